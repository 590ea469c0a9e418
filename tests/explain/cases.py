"""Facts for every cause: some in which it holds, and some like them in which it does not."""

from dataclasses import replace
from typing import Any, NamedTuple

from common.kafka.topics import TopicPartition
from explain.causes.topic import TopicCase
from explain.facts import (
    Batch,
    Broker,
    Cluster,
    Follower,
    Group,
    GroupCase,
    Look,
    Member,
    OpenTransaction,
    Partition,
    PartitionCase,
    Producer,
    ProducerCase,
    ProducerEntry,
    Quorum,
    Quota,
    Record,
    RecordCase,
    Right,
    SharedRun,
    Topic,
    Transaction,
    TransactionCase,
    Unanswered,
)

NOW_MS = 1_800_000_000_000
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
SETTINGS = {
    "cleanup.policy": "delete",
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "max.message.bytes": "1048588",
}


class Trial(NamedTuple):
    """Facts in which a cause holds, and facts in which it does not."""

    holds: Any
    not_so: Any


def brokers(*down: int) -> dict[int, Broker]:
    return {
        each: Broker(node_id=each, address=f"b{each}:9092", is_fenced=each in down)
        for each in (1, 2, 3)
    }


def follower(node_id: int, *, silent_ms: int = 0, end_offset: int = 100) -> Follower:
    at = NOW_MS - silent_ms
    return Follower(node_id=node_id, end_offset=end_offset, last_fetch_ms=at, last_caught_up_ms=at)


def quorum(**silent_ms: int) -> Quorum:
    voters = {each: follower(each, silent_ms=silent_ms.get(f"v{each}", 0)) for each in (1, 2, 3)}
    return Quorum(leader_id=1, high_watermark=100, voters=voters)


def cluster(*down: int, **silent_ms: int) -> Cluster:
    return Cluster(now_ms=NOW_MS, brokers=brokers(*down), quorum=quorum(**silent_ms))


def partition(**changes: Any) -> Partition:
    """Return a partition that is well, with ten records, but for some changes."""
    healthy = Partition(
        name=P0,
        leader_id=1,
        replicas=(1, 2, 3),
        isr=(1, 2, 3),
        elr=(),
        min_isr=2,
        earliest=0,
        last_stable=10,
        high_watermark=10,
        open_transactions=(),
    )
    return replace(healthy, **changes)


def topic(*partitions: Partition, **settings: str) -> Topic:
    changed = {name.replace("_", "."): value for name, value in settings.items()}
    return Topic(
        name="orders", settings={**SETTINGS, **changed}, partitions=partitions or (partition(),)
    )


def opened(**changes: Any) -> OpenTransaction:
    known = OpenTransaction(
        producer_id=4000,
        producer_epoch=2,
        start_offset=6,
        last_write_ms=NOW_MS - 30_000,
        is_known=True,
        transactional_id="billing-1",
        coordinator_id=2,
        state="Ongoing",
        started_ms=NOW_MS - 42_000,
        timeout_ms=60_000,
    )
    return replace(known, **changes)


def of_partition(*down: int, topic_settings: dict[str, str] | None = None, **changes: Any) -> Any:
    one = partition(**changes)
    return PartitionCase(cluster(*down), topic(one, **(topic_settings or {})), one)


HELD_BACK = {"last_stable": 6, "open_transactions": (opened(),)}
THROTTLED = {"leader_replication_throttled_replicas": "0:1,0:2"}

PARTITIONS = {
    "partition-without-leader-all-replicas-down": Trial(
        of_partition(1, 2, 3, leader_id=-1, isr=(3,)), of_partition(1, 2, 3)
    ),
    "partition-without-leader-in-sync-replicas-down": Trial(
        of_partition(3, leader_id=-1, isr=(3,)), of_partition(1, 2, 3, leader_id=-1, isr=(3,))
    ),
    "partition-replica-down": Trial(
        PartitionCase(cluster(3, v3=40_000), topic(), partition(isr=(1, 2))),
        of_partition(isr=(1, 2)),
    ),
    "partition-replica-down-unknown-since": Trial(
        of_partition(isr=(1, 2), replicas=(1, 2, 9)), of_partition(3, isr=(1, 2))
    ),
    "partition-replica-behind": Trial(
        of_partition(isr=(1, 2), behind={3: 7}), of_partition(isr=(1, 2), adding=(3,))
    ),
    "partition-below-min-isr": Trial(of_partition(2, 3, isr=(1,)), of_partition(3, isr=(1, 2))),
    "partition-at-min-isr": Trial(of_partition(3, isr=(1, 2)), of_partition()),
    "partition-min-isr-above-replicas": Trial(of_partition(min_isr=4), of_partition(min_isr=3)),
    "partition-leader-not-preferred": Trial(
        of_partition(leader_id=2), of_partition(1, leader_id=2, isr=(2, 3))
    ),
    "partition-reassigning": Trial(
        of_partition(replicas=(1, 2, 3, 4), adding=(4,), removing=(3,)), of_partition()
    ),
    "partition-replication-throttled": Trial(
        of_partition(3, topic_settings=THROTTLED, isr=(1, 2)),
        of_partition(topic_settings=THROTTLED),
    ),
    "partition-held-back-by-transaction": Trial(
        of_partition(**HELD_BACK), of_partition(open_transactions=(opened(start_offset=10),))
    ),
    "partition-transaction-hangs": Trial(
        of_partition(last_stable=6, open_transactions=(opened(is_known=False),)),
        of_partition(last_stable=6, open_transactions=(opened(is_known=None),)),
    ),
    "partition-in-sync": Trial(of_partition(), of_partition(3, isr=(1, 2))),
}


def batch(**changes: Any) -> Batch:
    """Return a batch of offsets 4 to 7."""
    whole = Batch(
        first_offset=4,
        last_offset=7,
        producer_id=-1,
        is_transactional=False,
        marker=None,
        timestamps=dict.fromkeys(range(4, 8), NOW_MS - 1_000),
    )
    return replace(whole, **changes)


def record(
    offset: int = 6, *, one: Partition | None = None, settings: Any = (), **changes: Any
) -> Any:
    """Return offset 6 of a partition with ten records, but for some changes."""
    found = Record(
        offset=offset,
        end=10,
        batch=batch(),
        is_aborted=False,
        holders=dict.fromkeys((1, 2, 3), True),
        directories={1: "/data"},
        commits={"fraud": 10},
    )
    one = one or partition()
    return RecordCase(cluster(), topic(one, **dict(settings)), one, replace(found, **changes))


OPEN = partition(last_stable=6, open_transactions=(opened(),))
ITS_BATCH = batch(producer_id=4000, is_transactional=True)
GAP = batch(timestamps={4: NOW_MS, 7: NOW_MS})
COMPACTED = {"cleanup_policy": "compact"}

RECORDS = {
    "record-removed-by-retention": Trial(
        record(one=partition(earliest=7), batch=None), record(one=partition(earliest=6))
    ),
    "record-removed": Trial(
        record(one=partition(earliest=7), batch=None, settings=COMPACTED),
        record(one=partition(earliest=7), batch=None),
    ),
    "record-beyond-end": Trial(record(10, batch=None), record(9)),
    "record-above-high-watermark": Trial(
        record(9, end=10, one=partition(high_watermark=9, last_stable=9)), record(9)
    ),
    "record-in-open-transaction": Trial(record(one=OPEN, batch=ITS_BATCH), record(one=OPEN)),
    "record-behind-open-transaction": Trial(record(one=OPEN), record(one=OPEN, batch=ITS_BATCH)),
    "record-aborted": Trial(
        record(batch=ITS_BATCH, is_aborted=True), record(batch=ITS_BATCH, is_aborted=False)
    ),
    "record-unreadable": Trial(record(batch=batch(timestamps={}, unreadable="damaged")), record()),
    "record-is-marker": Trial(record(batch=batch(marker="COMMIT")), record()),
    "record-compacted-away": Trial(
        record(batch=GAP, settings=COMPACTED), record(settings=COMPACTED)
    ),
    "record-number-unused": Trial(record(batch=GAP), record()),
    "record-readable": Trial(record(), record(one=OPEN)),
    "record-replicas": Trial(record(), record(holders={})),
    "record-lacking-replicas": Trial(record(holders={1: True, 2: False}), record()),
    "record-expires": Trial(record(), record(settings={"retention_ms": "-1"})),
    "record-kept": Trial(
        record(settings={"retention_ms": "-1"}),
        record(settings={"retention_ms": "-1", "retention_bytes": "1000"}),
    ),
    "record-from-the-future": Trial(
        record(batch=batch(timestamps={6: NOW_MS + 7_200_000})), record()
    ),
    "record-read-by": Trial(record(), record(commits={"fraud": 6})),
    "record-not-read-by": Trial(record(commits={"fraud": 6}), record()),
}


def member(name: str = "a", *assigned: TopicPartition, **changes: Any) -> Member:
    one = Member(
        member_id=name,
        client_id=f"client-{name}",
        host="/10.0.0.1",
        assigned=assigned,
        subscribed=("orders",),
    )
    return replace(one, **changes)


def look(**changes: Any) -> Look:
    """Return a look at a group that has read all of both partitions, but for some changes."""
    well = Look(
        at_ms=NOW_MS,
        state="Stable",
        members=(member("a", P0, P1),),
        committed={P0: 10, P1: 10},
        ends={P0: 10, P1: 10},
    )
    return replace(well, **changes)


def group(*looks: Look, partitions: tuple[Partition, ...] = (), **changes: Any) -> GroupCase:
    both = partitions or (partition(), partition(name=P1))
    one = Group(
        group_id="fraud",
        kind="Classic",
        protocol_type="consumer",
        assignor="range",
        coordinator_id=2,
        looks=looks or (look(),),
        topics={"orders": topic(*both)},
    )
    return GroupCase(cluster(), replace(one, **changes))


def twice(before: Any, after: Any, **changes: Any) -> GroupCase:
    """Return a group that was looked at now and ten seconds before."""
    return group(
        look(**{"at_ms": NOW_MS - 10_000, **before}), look(at_ms=NOW_MS, **after), **changes
    )


MISSING = Topic(name="order", exists=False, similar=("orders",))
BEHIND = {"committed": {P0: 6, P1: 10}}

GROUPS = {
    "group-missing": Trial(group(kind=None, looks=(), similar=("frauds",)), group()),
    "group-coordinator-loads": Trial(
        group(looks=(), coordinator_error="COORDINATOR_LOAD_IN_PROGRESS"), group()
    ),
    "group-coordinator-unavailable": Trial(
        group(looks=(), coordinator_error="COORDINATOR_NOT_AVAILABLE"),
        group(looks=(), coordinator_error="COORDINATOR_LOAD_IN_PROGRESS"),
    ),
    "group-without-members": Trial(
        group(look(state="Empty", members=(), **BEHIND)), group(look(**BEHIND))
    ),
    "group-of-another-protocol": Trial(group(protocol_type="connect"), group(protocol_type="")),
    "group-of-streams": Trial(group(kind="Streams", looks=()), group()),
    "group-assignor-clash": Trial(
        group(wanted_assignor="roundrobin"), group(wanted_assignor="range")
    ),
    "group-rebalancing": Trial(
        twice({"state": "PreparingRebalance"}, {"state": "CompletingRebalance"}),
        twice({"state": "PreparingRebalance"}, {}),
    ),
    "group-members-change": Trial(twice({}, {"members": (member("b", P0, P1),)}), twice({}, {})),
    "group-subscribed-to-no-topic": Trial(
        group(
            look(members=(member("a", P0, P1, subscribed=("orders", "order")),)),
            topics={"orders": topic(), "order": MISSING},
        ),
        group(),
    ),
    "group-partition-without-owner": Trial(group(look(members=(member("a", P0),))), group()),
    "group-idle-members": Trial(
        group(look(members=(member("a", P0), member("b", P1), member("c")))),
        group(look(members=(member("a", P0, P1), member("b")))),
    ),
    "group-quota": Trial(
        group(look(**BEHIND), quotas=(Quota(name="consumer_byte_rate", value=1024, entity="x"),)),
        group(quotas=(Quota(name="consumer_byte_rate", value=1024, entity="x"),)),
    ),
    "group-state": Trial(group(), group(look(members=(), state="Empty"))),
}

PROGRESSES = {
    "group-offset-gone": Trial(
        group(look(**BEHIND), partitions=(partition(earliest=8), partition(name=P1))),
        group(look(**BEHIND), partitions=(partition(earliest=6), partition(name=P1))),
    ),
    "group-offset-beyond-end": Trial(group(look(committed={P0: 11, P1: 10})), group()),
    "group-never-committed": Trial(group(look(committed={P0: 10})), group()),
    "group-behind-open-transaction": Trial(
        group(
            look(committed={P0: 6, P1: 10}, ends={P0: 6, P1: 10}),
            partitions=(OPEN, partition(name=P1)),
        ),
        group(
            look(committed={P0: 5, P1: 10}, ends={P0: 6, P1: 10}),
            partitions=(OPEN, partition(name=P1)),
        ),
    ),
    "group-partition-without-leader": Trial(
        group(partitions=(partition(leader_id=-1), partition(name=P1))), group()
    ),
    "group-stands-still": Trial(
        twice(BEHIND, BEHIND, waiting_since_ms={P0: NOW_MS - 60_000}),
        twice(BEHIND, BEHIND, waiting_since_ms={P0: NOW_MS - 59_000}),
    ),
    "group-has-not-committed": Trial(
        twice(BEHIND, BEHIND), twice(BEHIND, BEHIND, waiting_since_ms={P0: NOW_MS - 60_000})
    ),
    "group-slower-than-producers": Trial(
        twice({"committed": {P0: 2}, "ends": {P0: 10}}, {"committed": {P0: 4}, "ends": {P0: 30}}),
        twice({"committed": {P0: 2}, "ends": {P0: 10}}, {"committed": {P0: 9}, "ends": {P0: 12}}),
    ),
    "group-catches-up": Trial(
        twice({"committed": {P0: 2}, "ends": {P0: 10}}, {"committed": {P0: 9}, "ends": {P0: 12}}),
        twice({"committed": {P0: 2}, "ends": {P0: 10}}, {"committed": {P0: 4}, "ends": {P0: 30}}),
    ),
    "group-only-markers-left": Trial(
        group(look(committed={P0: 9, P1: 10}), only_markers=frozenset({P0})), group()
    ),
    "group-up-to-date": Trial(
        group(look(committed={P0: 9, P1: 10}), only_markers=frozenset({P0})),
        group(look(**BEHIND)),
    ),
}

TOPICS = {
    "topic-missing": Trial(TopicCase(MISSING), TopicCase(topic())),
    "topic-partition-missing": Trial(
        TopicCase(topic(), number=1, partition_count=1),
        TopicCase(topic(), number=0, partition_count=1),
    ),
    "topic-record-too-large": Trial(
        TopicCase(topic(), record_bytes=1_048_589), TopicCase(topic(), record_bytes=1_048_588)
    ),
}


def unanswered(error: str) -> list[Unanswered]:
    return [Unanswered("the groups", error, "no")]


QUESTIONS = {
    "asking-not-allowed": Trial(unanswered("CLUSTER_AUTHORIZATION_FAILED"), []),
    "asking-not-supported": Trial(
        unanswered("UNSUPPORTED_VERSION"), unanswered("REQUEST_TIMED_OUT")
    ),
    "asking-without-answer": Trial(
        unanswered("REQUEST_TIMED_OUT"), unanswered("UNSUPPORTED_VERSION")
    ),
}

LEFT_OUTS = {"more-of-the-same": Trial({"partition-replica-down": 7}, {})}


def shared(*looks: Look, **changes: Any) -> GroupCase:
    """Return a share group that has finished all of both partitions, but for some changes."""
    quiet = look(members=(member("a", P0, P1, subscribed=None),))
    return group(*(looks or (quiet,)), kind="Share", topics={}, **changes)


def shared_twice(before: Any, after: Any) -> GroupCase:
    return shared(look(**{"at_ms": NOW_MS - 10_000, **before}), look(**after))


SHARES = {
    "share-group-without-members": Trial(shared(look(members=(), **BEHIND)), shared()),
    "share-group-not-started": Trial(shared(unstarted=(P1,)), shared()),
    "share-records-locked": Trial(shared_twice(BEHIND, BEHIND), shared_twice(BEHIND, {})),
    "share-records-archived": Trial(
        shared(shared={P0: (SharedRun(3, 4, is_archived=True, deliveries=5),)}),
        shared(shared={P0: (SharedRun(3, 4, is_archived=False, deliveries=1),)}),
    ),
    "share-records-returned": Trial(
        shared(shared={P0: (SharedRun(3, 4, is_archived=False, deliveries=1),)}),
        shared(shared={P0: (SharedRun(3, 4, is_archived=False, deliveries=0),)}),
    ),
    "share-group-progress": Trial(shared(), shared(look(committed={}))),
}


def transaction(**changes: Any) -> TransactionCase:
    """Return a transaction that has been open for 42 seconds of its 60, but for some changes."""
    one = Transaction(
        transactional_id="billing-1",
        coordinator_id=2,
        producer_id=4000,
        producer_epoch=2,
        state="Ongoing",
        timeout_ms=60_000,
        started_ms=NOW_MS - 42_000,
        partitions=(partition(),),
    )
    return TransactionCase(cluster(), replace(one, **changes))


PAST = {"started_ms": NOW_MS - 90_000}
CLOSED = {"state": "Empty", "started_ms": None, "partitions": ()}
TRANSACTIONS = {
    "transaction-missing": Trial(
        transaction(is_found=False, state="", similar=("billing",)), transaction()
    ),
    "transaction-coordinator-unavailable": Trial(
        transaction(coordinator_error="COORDINATOR_NOT_AVAILABLE", state=""), transaction()
    ),
    "transaction-ongoing": Trial(transaction(), transaction(**PAST)),
    "transaction-overdue": Trial(transaction(**PAST), transaction()),
    "transaction-ending": Trial(transaction(state="PrepareCommit"), transaction()),
    "transaction-ending-without-leader": Trial(
        transaction(state="PrepareAbort", partitions=(partition(leader_id=-1),)),
        transaction(state="PrepareAbort"),
    ),
    "transaction-closed": Trial(transaction(**CLOSED), transaction()),
}


def entry(**changes: Any) -> ProducerEntry:
    one = ProducerEntry(
        partition=P0, epoch=2, last_sequence=9, last_write_ms=NOW_MS - 1_000, open_since=None
    )
    return replace(one, **changes)


def producer(*entries: ProducerEntry, **changes: Any) -> ProducerCase:
    one = Producer(producer_id=4000, epoch=None, entries=entries or (entry(),))
    return ProducerCase(cluster(), replace(one, **changes))


PRODUCERS = {
    "producer-unknown": Trial(producer(entries=()), producer(entries=(), is_complete=False)),
    "producer-fenced": Trial(producer(epoch=1), producer(epoch=2)),
    "producer-transaction-hangs": Trial(
        producer(entry(open_since=3)),
        producer(entry(open_since=3), transaction=transaction().transaction),
    ),
    "producer-idle": Trial(producer(entry(last_write_ms=NOW_MS - 61_000)), producer()),
    "producer-wrote": Trial(producer(), producer(entry(last_write_ms=None))),
}


def nodes(**changes: Any) -> Cluster:
    return replace(cluster(), **changes)


def one_broker(**changes: Any) -> Cluster:
    return nodes(brokers={**brokers(), 2: replace(brokers()[2], **changes)})


def never_fetched(node_id: int) -> Cluster:
    voters = quorum().voters
    new = replace(voters[node_id], end_offset=-1, last_fetch_ms=None, last_caught_up_ms=None)
    return nodes(quorum=replace(quorum(), voters={**voters, node_id: new}))


CLUSTERS = {
    "cluster-without-controller": Trial(
        nodes(quorum=None, quorum_error="REQUEST_TIMED_OUT"), nodes(quorum=None)
    ),
    "cluster-voter-silent": Trial(cluster(v2=6_000), cluster(v2=4_000)),
    "cluster-voter-never-fetched": Trial(never_fetched(2), never_fetched(1)),
    "cluster-quorum-at-risk": Trial(cluster(v2=6_000), cluster()),
    "cluster-broker-fenced": Trial(cluster(2), cluster()),
    "cluster-broker-silent": Trial(
        one_broker(silence="b2:9092 did not answer in time"),
        one_broker(silence="b2:9092 did not answer in time", is_fenced=True),
    ),
    "cluster-directory-failed": Trial(one_broker(failed_directories=("/disk2",)), cluster()),
    "cluster-state": Trial(cluster(), nodes(quorum=None)),
}


def given(**changes: Any) -> list[Right]:
    one = Right(principal="User:bob", operation="READ", resource="topic orders", is_allowed=False)
    return [replace(one, **changes)]


RIGHTS = {
    "right-denied": Trial(given(denied_by="User:bob from *: DENY READ on orders"), given()),
    "right-missing": Trial(given(), given(is_allowed=True)),
    "right-given": Trial(given(is_allowed=True), given()),
}

TRIALS: dict[str, dict[str, Trial]] = {
    "A topic": TOPICS,
    "A partition": PARTITIONS,
    "A record": RECORDS,
    "A group": GROUPS,
    "How far a group is": PROGRESSES,
    "A share group": SHARES,
    "A producer": PRODUCERS,
    "A transaction": TRANSACTIONS,
    "The cluster": CLUSTERS,
    "Rights": RIGHTS,
    "What is not known": QUESTIONS,
    "What is left out": LEFT_OUTS,
}
"""By the titles of the tables."""
