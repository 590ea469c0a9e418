"""What a partition becomes when brokers come and go, as Kafka's PartitionChangeBuilder has it."""

from dataclasses import replace
from typing import Any

import pytest

from broker.metadata.control.leadership.partition_change import Election, PartitionChange
from broker.metadata.parts.topics import RECOVERING, PartitionImage, change_partition

HOME = [bytes([15 + number]) * 16 for number in range(10)]  # the directory of each broker


def partition(
    replicas: str, isr: str, leader: int, elr: str = "", last_known: str = ""
) -> PartitionImage:
    return PartitionImage(
        partition=0,
        replicas=ids(replicas),
        isr=ids(isr),
        leader=leader,
        leader_epoch=5,
        partition_epoch=9,
        elr=ids(elr),
        last_known_elr=ids(last_known),
        directories=tuple(HOME[broker_id] for broker_id in ids(replicas)),
    )


def ids(text: str) -> tuple[int, ...]:
    return tuple(map(int, text))


def changed(before: PartitionImage, alive: str, **wanted: Any) -> PartitionImage:
    """Return the partition after the record, having checked what every record must keep."""
    change = PartitionChange(
        before,
        topic_id=bytes(16),
        is_acceptable_leader=lambda broker_id: broker_id in ids(alive),
        default_directory=lambda broker_id: HOME[broker_id],
        min_isr=wanted.pop("min_isr", 2),
        is_elr_enabled=wanted.pop("elr", False),
    )
    for name, value in wanted.items():
        setattr(change, name, value)
    record = change.record()
    after = replace(before)
    if record is not None:
        change_partition(after, record)
        assert after.partition_epoch == before.partition_epoch + 1
    return after


def state(image: PartitionImage) -> tuple[Any, ...]:
    def text(values: tuple[int, ...]) -> str:
        return "".join(map(str, values))

    return image.leader, text(image.isr), text(image.elr), text(image.last_known_elr)


@pytest.mark.parametrize(
    ("before", "isr", "alive", "after"),
    [
        # The leader goes: the next replica that is in sync leads.
        (("123", "123", 1), "23", "23", (2, "23", "", "")),
        (("123", "13", 1), "3", "23", (3, "3", "", "")),
        # A follower goes: the leader stays.
        (("123", "123", 1), "13", "13", (1, "13", "", "")),
        # The last one in sync goes: nobody leads, and it stays the one in sync.
        (("123", "1", 1), "", "23", (-1, "1", "", "")),
        # It comes again.
        (("123", "1", -1), "1", "123", (1, "1", "", "")),
        # Another comes: it lacks what was committed.
        (("123", "1", -1), "1", "23", (-1, "1", "", "")),
    ],
)
def test_leaders_come_from_the_in_sync_set(before, isr, alive, after) -> None:
    assert state(changed(partition(*before), alive, isr=ids(isr))) == after


@pytest.mark.parametrize(
    ("before", "isr", "alive", "after"),
    [
        # As long as enough are in sync there is no need of others.
        (("123", "123", 1), "23", "23", (2, "23", "", "")),
        # Below the limit those who leave stay eligible: what is committed since needs the limit.
        (("123", "12", 1), "2", "23", (2, "2", "1", "")),
        (("123", "2", 2, "1"), "", "3", (-1, "", "12", "2")),
        # An eligible one comes again and leads.
        (("123", "", -1, "12", "2"), "", "13", (1, "1", "2", "")),
        # Nobody comes who may.
        (("123", "", -1, "12", "2"), "", "3", (-1, "", "12", "2")),
        # Enough are in sync again.
        (("123", "2", 2, "1"), "23", "23", (2, "23", "", "")),
        # An eligible one joins again.
        (("123", "2", 2, "1"), "21", "12", (2, "21", "", "")),
    ],
)
def test_eligible_leaders_take_over_when_nobody_is_in_sync(before, isr, alive, after) -> None:
    assert state(changed(partition(*before), alive, isr=ids(isr), elr=True)) == after


def test_who_shut_down_uncleanly_is_eligible_no_longer() -> None:
    before = partition("123", "", -1, elr="12", last_known="2")
    after = changed(before, "1", elr=True, unclean_shutdown=frozenset({1}))
    assert state(after) == (-1, "", "2", "2")


def test_the_last_known_leader_comes_back_when_nobody_is_eligible_any_more() -> None:
    before = partition("123", "", -1, elr="", last_known="2")
    assert state(changed(before, "13", elr=True)) == (-1, "", "", "2")
    after = changed(before, "123", elr=True)
    assert state(after) == (2, "2", "", "")
    assert after.leader_recovery_state == RECOVERING


def test_eligible_leaders_are_dropped_when_the_feature_is_off() -> None:
    after = changed(partition("123", "2", 2, elr="1", last_known="3"), "123")
    assert state(after) == (2, "2", "", "")


@pytest.mark.parametrize(
    ("election", "alive", "after"),
    [
        (Election.ONLINE, "123", (2, "23", "", "")),
        (Election.PREFERRED, "123", (2, "23", "", "")),
        (Election.PREFERRED, "3", (3, "23", "", "")),
        (Election.UNCLEAN, "23", (2, "23", "", "")),
        (Election.UNCLEAN, "1", (1, "1", "", "")),
        (Election.ONLINE, "1", (-1, "23", "", "")),
    ],
)
def test_an_election_keeps_the_leader_that_can_lead(election, alive, after) -> None:
    assert state(changed(partition("123", "23", 2), alive, election=election)) == after


def test_the_preferred_replica_leads_when_it_is_in_sync() -> None:
    after = changed(partition("123", "213", 2), "123", election=Election.PREFERRED)
    assert (after.leader, after.leader_epoch) == (1, 6)


def test_an_unclean_leader_has_to_recover_first() -> None:
    after = changed(partition("12", "1", -1), "2", election=Election.UNCLEAN)
    assert (state(after), after.leader_recovery_state) == ((2, "2", "", ""), RECOVERING)


def test_the_leader_epoch_grows_only_with_a_change_of_leader_or_a_lost_replica() -> None:
    before = partition("123", "123", 1)
    assert changed(before, "123", isr=(1, 2)).leader_epoch == 5
    assert changed(before, "123", isr=(2, 3), replicas=(2, 3)).leader_epoch == 6
    assert changed(before, "23", isr=(2, 3)).leader_epoch == 6
    shorter = changed(before, "123", replicas=(1, 2), isr=(1, 2))
    assert (shorter.leader, shorter.leader_epoch) == (1, 6)


def test_a_change_of_nothing_is_no_record() -> None:
    before = partition("123", "12", 1)
    assert changed(before, "123") == before


def test_a_move_ends_when_all_that_come_are_in_sync() -> None:
    before = partition("12", "12", 1)
    moving = changed(before, "1234", replicas=(3, 4, 1, 2), adding=(3, 4), removing=(1, 2))
    assert (moving.replicas, moving.adding_replicas) == ((3, 4, 1, 2), (3, 4))
    assert moving.directories == (HOME[3], HOME[4], HOME[1], HOME[2])
    half = changed(moving, "1234", isr=(1, 2, 3))
    assert (half.replicas, half.leader) == ((3, 4, 1, 2), 1)
    done = changed(half, "1234", isr=(1, 2, 3, 4))
    assert (done.replicas, done.isr, done.leader) == ((3, 4), (3, 4), 3)
    assert (done.adding_replicas, done.removing_replicas) == ((), ())
    assert done.leader_epoch == moving.leader_epoch + 1


def test_a_move_that_only_drops_replicas_ends_at_once() -> None:
    done = changed(partition("123", "123", 1), "123", replicas=(1, 2, 3), removing=(3,))
    assert (done.replicas, done.isr, done.removing_replicas) == ((1, 2), (1, 2), ())
