"""The check of every API: without the right a request has no effect and its answer no data."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from broker.security.authorizer import Authorizer, Requester
from broker.server.apis import SERVED_APIS
from broker.server.authorization.access import REFUSALS, Access
from broker.server.authorization.audit import MAX_LINES, WINDOW_MS, Audit
from broker.server.authorization.table import CHECKS
from broker.server.authorization.verdicts import Closed, Narrowed, Refused, Verdict, always
from common.kafka.acls import (
    Acl,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import API_VERSION_RANGES, ApiKey
from common.kafka.protocol.framing import request_class, response_class
from common.kafka.protocol.message import Message, Struct
from common.kafka.protocol.messages import (
    describe_share_group_offsets,
    metadata,
    offset_fetch,
)
from common.kafka.protocol.structs import encode_struct
from tests.lib.protocol_messages import sample

ALICE = Requester("User:alice", "127.0.0.1")
NAME = "grün"
"""Every name in a sample."""
DENIALS = {
    int(code)
    for code in ErrorCode
    if code.name.endswith("AUTHORIZATION_FAILED") or code == ErrorCode.OPERATION_NOT_ATTEMPTED
}
UNCHECKED = {
    ApiKey.API_VERSIONS,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.PUSH_TELEMETRY,
    # The controller compares the requester with the owner and the renewers.
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
}
OPEN_TO_ALL = {*UNCHECKED, ApiKey.DESCRIBE_CLUSTER, ApiKey.CREATE_DELEGATION_TOKEN}
"""Everybody may create a token for themselves, which is all that versions before 3 can ask for."""
SHORTENED = {ApiKey.LIST_GROUPS, ApiKey.LIST_TRANSACTIONS, ApiKey.DESCRIBE_DELEGATION_TOKEN}
"""Lists leave out what the requester may not see, without a word."""


class HandSetClock:
    """A clock whose time is set."""

    at_ms = 0

    def now_ms(self) -> int:
        return self.at_ms

    timestamp_ms = now_ms


class NoTopics:
    """No id is known."""

    creates_topics = False

    def name_of(self, topic_id: bytes) -> str | None:
        return None

    def exists(self, name: str) -> bool:
        return True


class EveryTopic:
    """All ids are of the topic with the name of the samples."""

    creates_topics = True

    def name_of(self, topic_id: bytes) -> str | None:
        return NAME

    def exists(self, name: str) -> bool:
        return False


def access(*rules: tuple[ResourceType, str, AclOperation]) -> Access:
    acls = [
        Acl(
            ResourcePattern(kind, name, PatternType.LITERAL),
            "User:alice",
            "*",
            operation,
            PermissionType.ALLOW,
        )
        for kind, name, operation in rules
    ]
    return Access(Authorizer(acls), EveryTopic(), ALICE, "Test", Audit(HandSetClock()))


def everything() -> Access:
    kinds = (
        ResourceType.TOPIC,
        ResourceType.GROUP,
        ResourceType.CLUSTER,
        ResourceType.TRANSACTIONAL_ID,
        ResourceType.USER,
        ResourceType.DELEGATION_TOKEN,
    )
    return access(*((kind, "*", AclOperation.ALL) for kind in kinds))


def served() -> Iterator[tuple[ApiKey, int]]:
    for key in sorted(CHECKS):
        versions = API_VERSION_RANGES[key]
        for version in range(versions.served_min, versions.max + 1):
            yield key, version


def codes_in(value: Any) -> Iterator[int]:
    """Give every error code in a message."""
    if isinstance(value, Struct):
        for name in value.__fields__:
            part = getattr(value, name)
            if name.endswith("error_code"):
                yield int(part)
            else:
                yield from codes_in(part)
    elif isinstance(value, list):
        for each in value:
            yield from codes_in(each)


def ask(key: ApiKey, version: int, rights: Access) -> tuple[Message, Verdict]:
    request = sample(request_class(key), version)
    if key == ApiKey.FETCH:
        request.session_epoch = 0
    return request, CHECKS[key](rights, request, version)


def test_every_served_api_has_a_check() -> None:
    assert set(CHECKS) >= SERVED_APIS
    assert {key for key, check in CHECKS.items() if check is always} == UNCHECKED


@pytest.mark.parametrize(("key", "version"), list(served()), ids=str)
def test_without_rights_nothing_is_done_and_nothing_is_told(key: ApiKey, version: int) -> None:
    request, verdict = ask(key, version, access())
    if isinstance(verdict, Refused):
        codes = list(codes_in(verdict.response))
        assert set(codes) & DENIALS
        assert set(codes) <= {*DENIALS, 0}
        encode_struct(verdict.response, version)
    elif isinstance(verdict, Narrowed):
        answer = response_class(key)()
        verdict.complete(answer)
        assert set(codes_in(answer)) <= {*DENIALS, 0}
        if key in {*SHORTENED, *OPEN_TO_ALL}:
            return
        assert key == ApiKey.METADATA, key
        assert not request.topics  # type: ignore[attr-defined]
        assert set(codes_in(answer)) & DENIALS
    else:
        assert key in OPEN_TO_ALL, verdict


@pytest.mark.parametrize(("key", "version"), list(served()), ids=str)
def test_with_all_rights_the_request_is_left_alone(key: ApiKey, version: int) -> None:
    request, verdict = ask(key, version, everything())
    untouched, _ = sample(request_class(key), version), None
    if key == ApiKey.FETCH:
        untouched.session_epoch = 0
    assert request == untouched
    assert verdict is None or isinstance(verdict, Narrowed)
    if isinstance(verdict, Narrowed):
        answer = sample(response_class(key), version)
        verdict.complete(answer)
        encode_struct(answer, version)


def test_a_request_that_wants_no_answer_ends_its_connection() -> None:
    request = sample(request_class(ApiKey.PRODUCE), 9)
    request.acks = 0
    assert CHECKS[ApiKey.PRODUCE](access(), request, 9) == Closed()


W, R, D = AclOperation.WRITE, AclOperation.READ, AclOperation.DESCRIBE
T, G, X, C = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.TRANSACTIONAL_ID,
    ResourceType.CLUSTER,
)
CLUSTER = "kafka-cluster"


@pytest.mark.parametrize(
    ("key", "version", "rights"),
    [
        (ApiKey.PRODUCE, 9, [(T, W), (X, W)]),
        (ApiKey.PRODUCE, 13, [(T, W), (X, W)]),
        (ApiKey.LIST_OFFSETS, 10, [(T, D)]),
        (ApiKey.DELETE_RECORDS, 2, [(T, AclOperation.DELETE)]),
        (ApiKey.DESCRIBE_PRODUCERS, 0, [(T, R)]),
        (ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, [(T, D)]),
        (ApiKey.JOIN_GROUP, 9, [(G, R)]),
        (ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, [(G, R), (T, D)]),
        (ApiKey.OFFSET_COMMIT, 9, [(G, R), (T, R)]),
        (ApiKey.OFFSET_FETCH, 9, [(G, D), (T, D)]),
        (ApiKey.OFFSET_FETCH, 7, [(G, D), (T, D)]),
        (ApiKey.OFFSET_DELETE, 0, [(G, AclOperation.DELETE), (T, R)]),
        (ApiKey.DELETE_GROUPS, 2, [(G, AclOperation.DELETE)]),
        (ApiKey.INIT_PRODUCER_ID, 5, [(X, W)]),
        (ApiKey.ADD_PARTITIONS_TO_TXN, 3, [(X, W), (T, W)]),
        (ApiKey.ADD_OFFSETS_TO_TXN, 4, [(X, W), (G, R)]),
        (ApiKey.END_TXN, 5, [(X, W)]),
        (ApiKey.TXN_OFFSET_COMMIT, 5, [(X, W), (G, R), (T, R)]),
        (ApiKey.CREATE_TOPICS, 7, [(T, AclOperation.CREATE)]),
        (ApiKey.CREATE_TOPICS, 7, [(C, AclOperation.CREATE)]),
        (ApiKey.DELETE_TOPICS, 6, [(T, AclOperation.DELETE)]),
        (ApiKey.CREATE_PARTITIONS, 3, [(T, AclOperation.ALTER)]),
        (ApiKey.METADATA, 13, [(T, D), (T, AclOperation.CREATE)]),
        (ApiKey.WRITE_TXN_MARKERS, 1, [(C, AclOperation.CLUSTER_ACTION)]),
        (ApiKey.ELECT_LEADERS, 2, [(C, AclOperation.ALTER)]),
        (ApiKey.CREATE_ACLS, 3, [(C, AclOperation.ALTER)]),
        (ApiKey.DESCRIBE_ACLS, 3, [(C, D)]),
        (ApiKey.DELETE_ACLS, 3, [(C, AclOperation.ALTER)]),
        (ApiKey.UPDATE_FEATURES, 2, [(C, AclOperation.ALTER)]),
        (ApiKey.ADD_RAFT_VOTER, 1, [(C, AclOperation.ALTER)]),
        (ApiKey.REMOVE_RAFT_VOTER, 0, [(C, AclOperation.ALTER)]),
        (ApiKey.DESCRIBE_QUORUM, 2, [(C, D)]),
        (ApiKey.LIST_CONFIG_RESOURCES, 1, [(C, AclOperation.DESCRIBE_CONFIGS)]),
        (ApiKey.SHARE_GROUP_HEARTBEAT, 1, [(G, R), (T, D)]),
        (ApiKey.STREAMS_GROUP_HEARTBEAT, 0, [(G, R), (T, D)]),
        (ApiKey.SHARE_FETCH, 2, [(G, R)]),
        (ApiKey.SHARE_ACKNOWLEDGE, 2, [(G, R)]),
        (ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, [(G, R), (T, R)]),
        (ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, [(G, AclOperation.DELETE), (T, R)]),
        (ApiKey.READ_SHARE_GROUP_STATE, 0, [(C, AclOperation.CLUSTER_ACTION)]),
        (ApiKey.WRITE_SHARE_GROUP_STATE, 1, [(C, AclOperation.CLUSTER_ACTION)]),
        (ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, [(C, AclOperation.CLUSTER_ACTION)]),
        (ApiKey.DELETE_SHARE_GROUP_STATE, 0, [(C, AclOperation.CLUSTER_ACTION)]),
        (ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 1, [(C, AclOperation.CLUSTER_ACTION)]),
    ],
    ids=str,
)
def test_exactly_these_rights_are_enough_and_one_fewer_is_not(
    key: ApiKey, version: int, rights: list[tuple[ResourceType, AclOperation]]
) -> None:
    named = [(kind, CLUSTER if kind is C else NAME, operation) for kind, operation in rights]
    request, verdict = ask(key, version, access(*named))
    assert not isinstance(verdict, Refused), verdict
    untouched = sample(request_class(key), version)
    assert request == untouched
    for missing in range(len(named)):
        _, verdict = ask(key, version, access(*named[:missing], *named[missing + 1 :]))
        answer = response_class(key)()
        if isinstance(verdict, Refused):
            answer = verdict.response
        elif isinstance(verdict, Narrowed):
            if key == ApiKey.OFFSET_FETCH:
                continue  # its answer is looked for by group: test_offset_fetch
            verdict.complete(answer)
        assert set(codes_in(answer)) & DENIALS, (key, named[missing])


def test_only_a_follower_needs_cluster_action_to_fetch() -> None:
    request = sample(request_class(ApiKey.FETCH), 12)
    request.replica_id, request.session_epoch = 5, 0
    verdict = CHECKS[ApiKey.FETCH](access((T, NAME, R)), request, 12)
    assert isinstance(verdict, Refused)
    request.replica_id = -1
    assert CHECKS[ApiKey.FETCH](access((T, NAME, R)), request, 12) is None


def test_a_session_forgets_no_right_that_was_taken_away() -> None:
    request = sample(request_class(ApiKey.FETCH), 12)
    request.replica_id, request.session_epoch, request.topics = -1, 7, []
    verdict = CHECKS[ApiKey.FETCH](access(), request, 12)
    assert isinstance(verdict, Narrowed)
    answer = sample(response_class(ApiKey.FETCH), 12)
    verdict.complete(answer)
    for topic in answer.responses:
        for partition in topic.partitions:
            assert partition.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            assert partition.records == b""


def test_offset_fetch_answers_what_is_allowed_and_what_is_not() -> None:
    request = sample(request_class(ApiKey.OFFSET_FETCH), 9)
    request.groups = request.groups[:1]
    request.groups[0].topics = deepcopy(request.groups[0].topics[:1]) + request.groups[0].topics[:1]
    request.groups[0].topics[0].name = "other"
    verdict = CHECKS[ApiKey.OFFSET_FETCH](access((G, NAME, D), (T, NAME, D)), request, 9)
    assert isinstance(verdict, Narrowed)
    assert [topic.name for topic in request.groups[0].topics] == [NAME]
    answer = sample(response_class(ApiKey.OFFSET_FETCH), 9)
    answer.groups = answer.groups[:1]
    answer.groups[0].error_code = 0
    verdict.complete(answer)
    assert [topic.name for topic in answer.groups[0].topics] == [NAME, NAME, "other"]


def test_a_group_that_is_named_twice_hides_the_same_topics_in_both_answers() -> None:
    messages = offset_fetch
    rights = access((G, "g", D), (T, "open", D))
    named = messages.OffsetFetchRequestGroup(
        group_id="g",
        topics=[
            messages.OffsetFetchRequestTopics(name=name, partition_indexes=[0])
            for name in ("open", "secret")
        ],
    )
    everything = [messages.OffsetFetchRequestGroup(group_id="g", topics=None) for _ in range(2)]
    request = messages.OffsetFetchRequest(groups=[named, *everything])
    verdict = CHECKS[ApiKey.OFFSET_FETCH](rights, request, 8)
    assert isinstance(verdict, Narrowed)

    def found(*names: str) -> offset_fetch.OffsetFetchResponseGroup:
        return messages.OffsetFetchResponseGroup(
            group_id="g", topics=[messages.OffsetFetchResponseTopics(name=name) for name in names]
        )

    answer = messages.OffsetFetchResponse(groups=[found("open"), found("open", "secret")])
    verdict.complete(answer)
    assert [[topic.name for topic in group.topics] for group in answer.groups] == [
        ["open", "secret"],
        ["open"],
    ]
    (refusal,) = answer.groups[0].topics[1].partitions
    assert refusal.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_share_group_that_is_named_twice_gets_the_refusals_of_each_request() -> None:
    messages = describe_share_group_offsets
    rights = access((G, "g", D), (T, "open", D))
    asked = [
        messages.DescribeShareGroupOffsetsRequestGroup(
            group_id="g",
            topics=[
                messages.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=[0])
                for name in names
            ],
        )
        for names in (["secret"], ["open"])
    ]
    request = messages.DescribeShareGroupOffsetsRequest(groups=asked)
    verdict = CHECKS[ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS](rights, request, 1)
    assert isinstance(verdict, Narrowed)
    topic = messages.DescribeShareGroupOffsetsResponseTopic(topic_name="open")
    answers = [
        messages.DescribeShareGroupOffsetsResponseGroup(group_id="g", topics=topics)
        for topics in ([], [topic])
    ]
    answer = messages.DescribeShareGroupOffsetsResponse(groups=answers)
    verdict.complete(answer)
    names = [[topic.topic_name for topic in group.topics] for group in answer.groups]
    assert names == [["secret"], ["open"]]


def with_names(value: Any, name: str) -> Any:
    """Put another name in the place of each of a sample."""
    if isinstance(value, Struct):
        for field in value.__fields__:
            part = getattr(value, field)
            if (named := with_names(part, name)) is not part:
                setattr(value, field, named)
        return value
    if isinstance(value, list):
        return [with_names(each, name) for each in value]
    return name if value == NAME else value


def codes_of(verdict: Verdict, key: ApiKey) -> set[int]:
    match verdict:
        case Refused(response):
            return set(codes_in(response))
        case Narrowed(complete):
            answer = response_class(key)()
            complete(answer)
            return set(codes_in(answer))
    return set()


@pytest.mark.parametrize(("key", "version"), list(served()), ids=str)
def test_a_name_that_is_too_long_is_refused_as_such_with_every_right(
    key: ApiKey, version: int
) -> None:
    denied = codes_of(ask(key, version, access())[1], key)
    expected = {int(invalid) for code, invalid in REFUSALS.values() if code in denied}
    request = with_names(sample(request_class(key), version), "x" * 5_000)
    if key == ApiKey.FETCH:
        request.session_epoch = 0
    codes = codes_of(CHECKS[key](everything_but_the_cluster(), request, version), key)
    if has_topic_ids(key, version):
        return
    assert not expected or codes & expected
    assert not codes & {int(code) for code, _ in REFUSALS.values()}


class EverythingButTheCluster(Authorizer):
    """Allows everything but what needs a right on the cluster; long names never come to it."""

    def may(self, requester: Requester, operation: int, resource_type: int, name: str) -> bool:
        assert len(name) < 5_000
        return resource_type != C


def everything_but_the_cluster() -> Access:
    return everything()._replace(authorizer=EverythingButTheCluster())


def has_topic_ids(key: ApiKey, version: int) -> bool:
    """Return whether a request names its topics by ids, which are never too long."""
    first = {ApiKey.FETCH: 13, ApiKey.PRODUCE: 13, ApiKey.DELETE_TOPICS: 6}.get(key)
    return first is not None and version >= first


def test_a_topic_that_comes_between_check_and_answer_is_not_told() -> None:
    late = b"i" * 16
    rights = access((T, "open", D))._replace(topics=NoTopics())
    request = metadata.MetadataRequest(
        topics=[
            metadata.MetadataRequestTopic(name=None, topic_id=late),
            metadata.MetadataRequestTopic(name="open"),
        ],
        allow_auto_topic_creation=False,
    )
    verdict = CHECKS[ApiKey.METADATA](rights, request, 12)
    assert isinstance(verdict, Narrowed)
    partitions = [metadata.MetadataResponsePartition()]
    answer = metadata.MetadataResponse(
        topics=[
            metadata.MetadataResponseTopic(name=name, topic_id=late, partitions=partitions)
            for name in ("secret", "open")
        ]
    )
    verdict.complete(answer)
    hidden, shown = answer.topics
    assert (hidden.name, hidden.error_code) == (None, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert hidden.partitions == []
    assert (shown.name, shown.partitions) == ("open", partitions)


def test_a_list_of_all_topics_is_shortened() -> None:
    request = request_class(ApiKey.METADATA)(topics=None)  # type: ignore[call-arg]
    verdict = CHECKS[ApiKey.METADATA](access(), request, 12)
    assert isinstance(verdict, Narrowed)
    answer = sample(response_class(ApiKey.METADATA), 12)
    verdict.complete(answer)
    assert answer.topics == []


def test_what_is_denied_is_written_to_the_audit_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="millstream.authorizer"):
        access().may(R, T, "a\nb")
        access((T, "a", R)).may(R, T, "a")
    (line,) = caplog.messages
    assert line == (
        "denied principal='User:alice' host=127.0.0.1 operation=READ "
        "resource=TOPIC:'a\\nb' api=Test"
    )


def test_denials_of_one_principal_fill_no_log_and_are_all_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = HandSetClock()
    alice = access()._replace(audit=Audit(clock))
    bob = alice._replace(requester=Requester("User:" + "b" * 4_000, "127.0.0.1"))
    with caplog.at_level("INFO", logger="millstream.authorizer"):
        for _ in range(MAX_LINES * 3):
            alice.may(R, T, "\x07" * 240)
        assert len(caplog.messages) == MAX_LINES + 1
        bob.may(R, T, "x" * 32_000)
        assert len(caplog.messages) == MAX_LINES + 2
        clock.at_ms = WINDOW_MS
        alice.may(R, T, "later")
    assert alice.audit.denials == MAX_LINES * 3 + 2
    assert len(caplog.messages) == MAX_LINES + 3
    assert max(map(len, caplog.messages)) < 2_000
