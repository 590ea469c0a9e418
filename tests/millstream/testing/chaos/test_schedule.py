"""The order of faults, and the expectations of a cluster during each."""

import itertools
import random

from millstream.testing.chaos.schedule import (
    ALL_FAULTS,
    KILL,
    NEED_A_SHIM,
    WIPED_DISK,
    Fault,
    Target,
    expected_keys,
    possible_faults,
    shuffled,
)

LEADERS = {"t/0": 1, "t/1": 2, "t/2": 3}
ONE_DOWN = Fault(KILL, Target.LEADER, True, 1, 1)
TWO_DOWN = Fault(KILL, Target.TWO, False, 1, 0)


def test_a_seed_gives_its_own_order_again() -> None:
    faults = list(ALL_FAULTS)
    first, again, other = (
        list(itertools.islice(shuffled(faults, random.Random(seed)), 80)) for seed in (1, 1, 2)
    )
    assert first == again != other


def test_every_fault_comes_before_one_comes_twice() -> None:
    count = len(ALL_FAULTS)
    order = list(itertools.islice(shuffled(list(ALL_FAULTS), random.Random(3)), 2 * count))
    assert set(order[:count]) == set(order[count:]) == set(ALL_FAULTS)


def test_with_replicas_everything_goes_on_while_a_majority_is_left() -> None:
    assert expected_keys(ONE_DOWN, LEADERS, [1], 3) == ["t/0", "t/1", "t/2"]
    assert expected_keys(TWO_DOWN, LEADERS, [1, 2], 3) == []


def test_without_replicas_only_what_is_led_elsewhere_goes_on() -> None:
    assert expected_keys(ONE_DOWN, LEADERS, [1], 1) == ["t/1", "t/2"]


def test_faults_that_cannot_be_stood_or_made_are_left_out() -> None:
    alone = {fault.name for fault in possible_faults(1, has_disk_faults=True)}
    assert WIPED_DISK not in alone
    assert alone >= NEED_A_SHIM
    without = {fault.name for fault in possible_faults(3, has_disk_faults=False)}
    assert NEED_A_SHIM.isdisjoint(without)
    assert WIPED_DISK in without


def test_faults_are_named_by_a_part_of_their_names() -> None:
    named = possible_faults(1, has_disk_faults=True, only=("wiped disk, leader", "ring"))
    assert [str(fault) for fault in named] == ["wiped disk, leader", "ring, one way, all"]
