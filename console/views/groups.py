"""Groups of every type: members, lag in records and in seconds, and the reset of offsets.

Lag in seconds is the age of the oldest record that a group has not read. A reset is first shown as
a preview, which is a plain read; the change then gets exactly the offsets that were shown, and is
refused while the group has members.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from aiohttp import web

from common.http.problems import ProblemError
from common.kafka.admin import group_offsets, groups, leaders, share_groups, streams_groups, topics
from common.kafka.admin.client import AdminClient
from common.kafka.admin.share_groups import SHARE
from common.kafka.admin.streams_groups import STREAMS
from common.kafka.errors import KafkaError
from common.kafka.topics import TopicPartition
from console.answers import Fields, body_of, json_answer
from console.console import CONSOLE
from console.group_lags import group_positions, lag_of, partition_ends
from console.reading.ages import ages_ms, group_ages_ms

PAGE_GROUPS: Final = 50

Offsets = dict[TopicPartition, int]


async def get_groups(request: web.Request) -> web.Response:
    """Return one page of the groups whose ids have a text."""
    cluster = request.app[CONSOLE].cluster
    fields = Fields(request.query)
    wanted = fields.text("q", "").casefold()
    listed = [each for each in await cluster.fresh(groups.list_groups)
              if wanted in each.group_id.casefold()]  # fmt: skip
    number = fields.whole("page", 1, least=1)
    visible = listed[(number - 1) * PAGE_GROUPS : number * PAGE_GROUPS]
    positions = await cluster.fresh(group_positions, tuple(visible))
    ages = await group_ages_ms(cluster.client, positions)
    return json_answer(
        {
            "count": len(listed),
            "page": number,
            "pages": max(1, -(-len(listed) // PAGE_GROUPS)),
            "groups": [
                {
                    "id": each.group_id,
                    "type": each.group_type or groups.CLASSIC,
                    "protocol": each.protocol_type,
                    "state": each.state,
                    "lag": str(lag_of(positions[each.group_id]))
                    if each.group_id in positions else None,
                    "age_ms": str(ages[each.group_id]) if each.group_id in ages else None,
                }
                for each in visible
            ],
        }
    )  # fmt: skip


async def get_group(request: web.Request) -> web.Response:
    """Return the members of one group, and its lag in each partition."""
    cluster = request.app[CONSOLE].cluster
    group_id = request.match_info["group"]
    found = await cluster.admin.run(_described, group_id)
    behind = {
        TopicPartition(each["topic"], each["partition"]): int(each["committed"])
        for each in found["partitions"]
        if each["lag"] not in (None, "0") and each["committed"] is not None
    }
    ages = await ages_ms(cluster.client, behind)
    for each in found["partitions"]:
        age = ages.get(TopicPartition(each["topic"], each["partition"]))
        each["age_ms"] = None if age is None else str(age)
    return json_answer(found)


def _described(client: AdminClient, group_id: str) -> dict[str, Any]:
    listed = {each.group_id: each for each in groups.list_groups(client)}
    listing = listed.get(group_id)
    if listing is None:
        raise ProblemError(404, f"There is no group {group_id}.")
    kind = listing.group_type or groups.CLASSIC
    shown: dict[str, Any] = {"id": group_id, "type": kind, "state": listing.state}
    if kind == SHARE:
        return shown | _share(client, group_id)
    if kind == STREAMS:
        return shown | _streams(client, group_id)
    if listing.protocol_type not in groups.CONSUMER_PROTOCOL_TYPES:
        # A Connect cluster, a registry: their members have no partitions of topics.
        return shown | {"protocol": listing.protocol_type, "members": [], "partitions": []}
    return shown | _consumers(client, group_id)


def _consumers(client: AdminClient, group_id: str) -> dict[str, Any]:
    described = _only(groups.describe_consumer_groups(client, [group_id]), group_id)
    owners = {
        partition: member.client_id for member in described.members
        for partition in member.assignment
    }  # fmt: skip
    return {
        "assignor": described.assignor,
        "coordinator": described.coordinator.node_id,
        "epoch": described.group_epoch,
        "members": [
            _member(each, each.host, each.assignment, each.group_instance_id)
            for each in described.members
        ],
        "partitions": _lag_rows(client, group_id, owners),
    }


def _streams(client: AdminClient, group_id: str) -> dict[str, Any]:
    described = _only(streams_groups.describe_streams_groups(client, [group_id]), group_id)
    owners = {
        partition: member.client_id
        for member in described.members
        for partition in described.partitions_of(member.assignment.active)
    }
    return {
        "coordinator": described.coordinator.node_id,
        "epoch": described.group_epoch,
        "members": [
            _member(each, each.process_id, described.partitions_of(each.assignment.active))
            for each in described.members
        ],
        "partitions": _lag_rows(client, group_id, owners),
    }


def _share(client: AdminClient, group_id: str) -> dict[str, Any]:
    described = _only(share_groups.describe_share_groups(client, [group_id]), group_id)
    offsets = share_groups.share_offsets(client, group_id)
    return {
        "coordinator": described.coordinator.node_id,
        "epoch": described.group_epoch,
        "members": [_member(each, each.host, each.assignment) for each in described.members],
        "partitions": [
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "committed": None if at.start_offset is None else str(at.start_offset),
                "end": None,
                "lag": None if at.lag is None else str(at.lag),
                "owner": None,
            }
            for partition, at in sorted(offsets.items())
        ],
    }


def _member(
    member: Any, host: str, partitions: Iterable[TopicPartition], instance_id: str | None = None
) -> dict[str, Any]:
    return {
        "id": member.member_id,
        "client_id": member.client_id,
        "host": host,
        "instance_id": instance_id,
        "partitions": list(map(str, partitions)),
    }


def _only(outcomes: Mapping[str, Any], group_id: str) -> Any:
    outcome = outcomes[group_id]
    if isinstance(outcome, KafkaError):
        raise outcome
    return outcome


def _lag_rows(
    client: AdminClient, group_id: str, owners: Mapping[TopicPartition, str]
) -> list[dict[str, Any]]:
    committed = group_offsets.committed_offsets(client, group_id)
    partitions = {*committed, *owners}
    ends = partition_ends(client, partitions)
    rows = []
    for each in sorted(partitions):
        at, end = committed.get(each), ends.get(each)
        lag = None if at is None or end is None else str(max(0, end - at.offset))
        rows.append(
            {
                "topic": each.topic,
                "partition": each.partition,
                "committed": None if at is None else str(at.offset),
                "end": None if end is None else str(end),
                "lag": lag,
                "owner": owners.get(each),
            }
        )
    return rows


# --- changes ---


async def preview_reset(request: web.Request) -> web.Response:
    """Return where a reset would put each partition; it changes nothing."""
    fields = Fields(request.query)
    group_id = request.match_info["group"]
    only = fields.text("topic", "")
    rule = _rule(fields)
    rows = await request.app[CONSOLE].cluster.admin.run(_preview, group_id, only, rule)
    return json_answer({"group": group_id, "partitions": rows})


Rule = Callable[[AdminClient, Offsets], Offsets]


def _rule(fields: Fields) -> Rule:
    """Return what computes the new offsets from the committed ones. Raise ProblemError."""
    match fields.text("to", ""):
        case "earliest":
            return lambda client, at: _listed(client, at, leaders.EARLIEST)
        case "latest":
            return lambda client, at: _listed(client, at, leaders.LATEST)
        case "time":
            when = fields.whole("time")
            return lambda client, at: _at_time(client, at, when)
        case "offset":
            offset = fields.whole("offset")
            return lambda _, at: dict.fromkeys(at, offset)
        case "shift":
            by = fields.whole("by", least=-(1 << 62), most=1 << 62)
            return lambda _, at: {each: offset + by for each, offset in at.items()}
        case unknown:
            raise ProblemError(422, f"to={unknown!r}: earliest, latest, time, offset or shift")


def _listed(client: AdminClient, at: Offsets, timestamp: int) -> Offsets:
    found = leaders.successes(leaders.list_offsets(client, list(at), timestamp))
    return {each: one.offset for each, one in found.items()}


def _at_time(client: AdminClient, at: Offsets, timestamp: int) -> Offsets:
    """Return the offsets at a time; the end of a partition whose records are all older."""
    ends = _listed(client, at, leaders.LATEST)
    found = _listed(client, at, timestamp)
    return {each: ends[each] if offset < 0 else offset for each, offset in found.items()}


def _preview(client: AdminClient, group_id: str, only: str, rule: Rule) -> list[dict[str, Any]]:
    committed = {
        each: at.offset
        for each, at in group_offsets.committed_offsets(client, group_id).items()
        if only in ("", each.topic)
    }
    if only and not committed:
        # A group that has read nothing of the topic yet.
        described = topics.describe_topics(client, [only])
        committed = {
            TopicPartition(only, each.partition): 0
            for topic in described
            for each in topic.partitions
        }
    if not committed:
        raise ProblemError(422, "The group has no committed offsets: name a topic.")
    begins = _listed(client, committed, leaders.EARLIEST)
    ends = _listed(client, committed, leaders.LATEST)
    wanted = rule(client, committed)
    rows = []
    for each, at in sorted(committed.items()):
        new = min(max(wanted[each], begins[each]), ends[each])
        rows.append(
            {
                "topic": each.topic,
                "partition": each.partition,
                "committed": str(at),
                "new": str(new),
                "reads_again": str(max(0, at - new)),
                "skips": str(max(0, new - at)),
            }
        )
    return rows


async def set_offsets(request: web.Request) -> web.Response:
    """Commit offsets for a group that has no members: {"offsets": {"orders:3": "812"}}."""
    group_id = request.match_info["group"]
    fields = Fields(body_of(await request.read()))
    texts = fields.mapping("offsets", lambda each: isinstance(each, str) and each.isdecimal())
    offsets: Offsets = {}
    for name, offset in texts.items():
        topic, _, number = name.rpartition(":")
        if not topic or not number.isdecimal():
            raise ProblemError(422, f"{name!r} is no partition: TOPIC:NUMBER")
        offsets[TopicPartition(topic, int(number))] = int(offset)
    await request.app[CONSOLE].cluster.admin.run(_set, group_id, offsets)
    return json_answer({"group": group_id, "partitions": len(offsets)})


def _set(client: AdminClient, group_id: str, offsets: Offsets) -> None:
    listed = {each.group_id: each for each in groups.list_groups(client)}
    listing = listed.get(group_id)
    if listing is not None and listing.state not in ("Empty", "Dead"):
        raise ProblemError(
            409,
            f"The group {group_id} is active ({listing.state}): its members would overwrite the "
            "offsets. Stop them first.",
        )
    if listing is not None and listing.group_type == SHARE:
        share_groups.alter_share_offsets(client, group_id, offsets)
    else:
        group_offsets.set_offsets(client, group_id, offsets)


async def delete_group(request: web.Request) -> web.Response:
    """Delete a group without members, if the body repeats its id."""
    group_id = request.match_info["group"]
    if Fields(body_of(await request.read())).text("name") != group_id:
        raise ProblemError(422, f"Repeat the id to delete the group: {group_id}")
    outcomes = await request.app[CONSOLE].cluster.admin.run(groups.delete_groups, [group_id])
    _only(outcomes, group_id)
    return json_answer({"group": group_id})


ROUTES: Final = (
    web.get("/api/groups", get_groups),
    web.get("/api/groups/{group}", get_group),
    web.delete("/api/groups/{group}", delete_group),
    web.get("/api/groups/{group}/reset", preview_reset),
    web.post("/api/groups/{group}/offsets", set_offsets),
)
