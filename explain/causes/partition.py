"""Why a partition cannot be written or read, or is in danger, and what holds its readers back."""

from collections.abc import Iterator
from typing import Final

from explain.causes.cause import Figures, fact, notice, problem
from explain.facts import OpenTransaction, Partition, PartitionCase

THROTTLES: Final = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)


def _electable(case: PartitionCase) -> list[int]:
    """Return the replicas that may become leader: those in the ISR, and the eligible ones."""
    partition = case.partition
    return sorted({*partition.isr, *(partition.elr or ())})


def _down(case: PartitionCase) -> list[int]:
    return [each for each in case.partition.replicas if not case.cluster.is_up(each)]


def _no_leader_all_down(case: PartitionCase) -> Iterator[Figures]:
    if not case.partition.has_leader and len(_down(case)) == len(case.partition.replicas):
        yield {"partition": case.partition.name, "replicas": case.partition.replicas}


def _no_leader_in_sync_down(case: PartitionCase) -> Iterator[Figures]:
    down = _down(case)
    up = [each for each in case.partition.replicas if each not in down]
    if not case.partition.has_leader and up:
        yield {
            "partition": case.partition.name,
            "electable": _electable(case),
            "up": up,
        }


def _broker_down(case: PartitionCase) -> Iterator[Figures]:
    if not case.partition.has_leader:
        return
    for each in _down(case):
        if each in case.partition.isr:
            continue
        since_ms = case.cluster.silent_since_ms(each)
        if each in case.cluster.brokers and since_ms is not None:
            yield {
                "partition": case.partition.name,
                "broker": each,
                "since": since_ms,
                "silent": case.cluster.now_ms - since_ms,
                "in_sync": case.partition.isr,
            }


def _broker_down_for_unknown_time(case: PartitionCase) -> Iterator[Figures]:
    if not case.partition.has_leader:
        return
    for each in _down(case):
        is_registered = each in case.cluster.brokers
        is_timed = is_registered and case.cluster.silent_since_ms(each) is not None
        if each not in case.partition.isr and not is_timed:
            yield {
                "partition": case.partition.name,
                "broker": each,
                "in_sync": case.partition.isr,
            }


def _replica_behind(case: PartitionCase) -> Iterator[Figures]:
    partition = case.partition
    if not partition.has_leader:
        return
    for each in partition.replicas:
        is_copying = each in partition.adding
        if case.cluster.is_up(each) and each not in partition.isr and not is_copying:
            yield {
                "partition": partition.name,
                "broker": each,
                "lag": partition.behind.get(each, 0),
                "leader": partition.leader_id,
            }


def _enough(partition: Partition) -> int | None:
    """Return how many in-sync replicas acks=all needs: no more than there are replicas."""
    wanted = partition.min_isr
    return None if wanted is None else min(wanted, len(partition.replicas))


def _below_min_isr(case: PartitionCase) -> Iterator[Figures]:
    partition = case.partition
    enough = _enough(partition)
    if partition.has_leader and enough is not None and len(partition.isr) < enough:
        yield {
            "partition": partition.name,
            "in_sync": partition.isr,
            "count": len(partition.isr),
            "wanted": enough,
            "missing": [each for each in partition.replicas if each not in partition.isr],
        }


def _at_min_isr(case: PartitionCase) -> Iterator[Figures]:
    partition = case.partition
    is_short = len(partition.isr) < len(partition.replicas)
    if partition.has_leader and is_short and len(partition.isr) == _enough(partition):
        yield {
            "partition": partition.name,
            "count": len(partition.isr),
            "in_sync": partition.isr,
        }


def _min_isr_above_replicas(case: PartitionCase) -> Iterator[Figures]:
    partition = case.partition
    if partition.min_isr is not None and partition.min_isr > len(partition.replicas):
        yield {
            "partition": partition.name,
            "wanted": partition.min_isr,
            "count": len(partition.replicas),
        }


def _not_preferred(case: PartitionCase) -> Iterator[Figures]:
    partition = case.partition
    preferred = partition.replicas[0]
    if partition.has_leader and partition.leader_id != preferred and preferred in partition.isr:
        yield {
            "partition": partition.name,
            "leader": partition.leader_id,
            "preferred": preferred,
            "topic": partition.name.topic,
            "number": partition.name.partition,
        }


def _reassigning(case: PartitionCase) -> Iterator[Figures]:
    partition = case.partition
    if partition.adding:
        yield {
            "partition": partition.name,
            "adding": partition.adding,
            "removing": partition.removing,
            "lag": max((partition.behind.get(each, 0) for each in partition.adding), default=0),
        }


def _throttled(case: PartitionCase) -> Iterator[Figures]:
    settings = case.topic.settings or {}
    is_complete = set(case.partition.isr) >= set(case.partition.replicas)
    for name in THROTTLES:
        value = settings.get(name)
        if value and not is_complete:
            yield {"partition": case.partition.name, "setting": name, "value": value}


def _oldest(case: PartitionCase) -> OpenTransaction | None:
    """Return the transaction that holds the last stable offset back."""
    opened = case.partition.open_transactions or ()
    return min(opened, key=lambda one: one.start_offset, default=None)


def _held_back(case: PartitionCase) -> Iterator[Figures]:
    partition, oldest = case.partition, _oldest(case)
    if oldest is None or oldest.is_known is not True:
        return
    if partition.high_watermark is None or partition.last_stable is None:
        return
    if partition.last_stable < partition.high_watermark and oldest.started_ms is not None:
        yield {
            "partition": partition.name,
            "transaction": oldest.transactional_id,
            "producer": oldest.producer_id,
            "start": oldest.start_offset,
            "since": oldest.started_ms,
            "age": case.cluster.now_ms - oldest.started_ms,
            "hidden": partition.high_watermark - partition.last_stable,
            "coordinator": oldest.coordinator_id,
            "timeout": oldest.timeout_ms or 0,
        }


def _hanging(case: PartitionCase) -> Iterator[Figures]:
    for one in case.partition.open_transactions or ():
        if one.is_known is False:
            yield {
                "partition": case.partition.name,
                "topic": case.partition.name.topic,
                "number": case.partition.name.partition,
                "producer": one.producer_id,
                "epoch": one.producer_epoch,
                "start": one.start_offset,
                "last_write": one.last_write_ms,
                "age": case.cluster.now_ms - (one.last_write_ms or case.cluster.now_ms),
            }


def _well(case: PartitionCase) -> Iterator[Figures]:
    partition = case.partition
    is_whole = partition.has_leader and len(partition.isr) == len(partition.replicas)
    if is_whole and partition.earliest is not None and partition.high_watermark is not None:
        yield {
            "partition": partition.name,
            "leader": partition.leader_id,
            "in_sync": partition.isr,
            "earliest": partition.earliest,
            "end": partition.high_watermark,
        }


PARTITION = (
    problem(
        "partition-without-leader-all-replicas-down",
        _no_leader_all_down,
        "Partition {partition} has no leader, so nobody can write or read it: all of its replicas "
        "({replicas:brokers}) are down.",
        "Start one of them; the last one that was in sync has all acknowledged records.",
    ),
    problem(
        "partition-without-leader-in-sync-replicas-down",
        _no_leader_in_sync_down,
        "Partition {partition} has no leader, so nobody can write or read it: only "
        "{electable:brokers} had all acknowledged records and may lead, and no such broker is up. "
        "The replicas that are up ({up:brokers}) may lack records.",
        "Start {electable:brokers}. If that is impossible, an unclean election makes a replica "
        "leader that loses acknowledged records: `millstream leader-election "
        "--election-type unclean`.",
    ),
    problem(
        "partition-replica-down",
        _broker_down,
        "Partition {partition} is under-replicated: broker {broker} has been silent for "
        "{silent:duration} (since {since:time}). In sync: {in_sync:brokers}.",
        "Start broker {broker}, or look why it cannot reach the controllers.",
    ),
    problem(
        "partition-replica-down-unknown-since",
        _broker_down_for_unknown_time,
        "Partition {partition} is under-replicated: broker {broker} is not up. In sync: "
        "{in_sync:brokers}.",
        "Start broker {broker}; if it will not return, move its replicas: `millstream "
        "reassign-partitions`.",
    ),
    problem(
        "partition-replica-behind",
        _replica_behind,
        "Partition {partition} is under-replicated: broker {broker} is up, but its replica is not "
        "in sync with the leader on broker {leader}; it is {lag:record} behind the high watermark.",
        "If the lag does not shrink, look at the log of broker {broker} and at the network between "
        "the two brokers.",
    ),
    problem(
        "partition-below-min-isr",
        _below_min_isr,
        "Partition {partition} has {count:in-sync replica}, fewer than min.insync.replicas "
        "({wanted}): producers with acks=all get NOT_ENOUGH_REPLICAS.",
        "Bring {missing:brokers} back. Producers repeat by themselves until delivery.timeout.ms.",
    ),
    notice(
        "partition-at-min-isr",
        _at_min_isr,
        "Partition {partition} has exactly as many in-sync replicas as min.insync.replicas asks "
        "for ({count}): without one of {in_sync:brokers}, producers with acks=all are refused.",
    ),
    notice(
        "partition-min-isr-above-replicas",
        _min_isr_above_replicas,
        "Partition {partition} has {count:replica}, but min.insync.replicas is {wanted}: brokers "
        "count it as {count}, so acks=all protects less than the setting says.",
        "Add replicas, or lower min.insync.replicas of the topic.",
    ),
    notice(
        "partition-leader-not-preferred",
        _not_preferred,
        "Broker {leader} leads partition {partition}, not the preferred broker {preferred}, which "
        "is in sync.",
        "The controller moves it by itself if auto.leader.rebalance.enable is on; or at once: "
        "`millstream leader-election --election-type preferred --topic {topic} "
        "--partition {number}`.",
    ),
    notice(
        "partition-reassigning",
        _reassigning,
        "Partition {partition} is being moved: {adding:brokers} copy it, then its replicas on "
        "brokers [{removing:names}] go. The slowest copy is {lag:record} behind.",
        "`millstream reassign-partitions --list` shows all moves; --cancel ends them.",
    ),
    notice(
        "partition-replication-throttled",
        _throttled,
        "The replication of partition {partition} is throttled ({setting} is {value}) while it is "
        "not complete.",
        "The throttle of a finished reassignment is removed by `millstream reassign-partitions "
        "--verify`.",
    ),
    notice(
        "partition-held-back-by-transaction",
        _held_back,
        "In partition {partition} the transaction of {transaction} (producer id {producer}) has "
        "been open for {age:duration} (since {since:time}) from offset {start} on, so readers with "
        "read_committed do not get the last {hidden:offset}.",
        "It ends by commit, by abort, or after its time-out of {timeout:duration}, when "
        "coordinator {coordinator} aborts it.",
    ),
    problem(
        "partition-transaction-hangs",
        _hanging,
        "In partition {partition} a transaction of producer id {producer} is open from offset "
        "{start} on, and no coordinator knows it: it will never end, and readers with "
        "read_committed wait there for ever. Its last record is {age:duration} old.",
        "`millstream transactions abort --topic {topic} --partition {number} "
        "--start-offset {start}` ends it; readers with read_committed then never get its records.",
    ),
    fact(
        "partition-in-sync",
        _well,
        "Partition {partition}: broker {leader} leads; in sync: {in_sync:brokers}; offsets "
        "from {earliest} to below {end}.",
    ),
)
