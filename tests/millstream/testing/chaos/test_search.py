"""How many attempts a search makes, and what it gives back; without a cluster."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from millstream.testing.chaos.schedule import CALLS, KILL, Fault, Target, faults_for_a_test
from millstream.testing.chaos.search import ChaosError, _Failure, _Search
from millstream.testing.chaos.trial import Step, read_step

POSSIBLE = faults_for_a_test(3, 3, has_links=True)
Plan = tuple[Step, ...]


class Attempts:
    """Attempts at a program that is only a function of the plan."""

    def __init__(self, judge: Callable[[Plan], Exception | None]) -> None:
        self.plans: list[Plan] = []
        self._judge = judge

    @property
    def count(self) -> int:
        return len(self.plans)

    def make(self, plan: Plan) -> _Failure | None:
        self.plans.append(plan)
        error = self._judge(plan)
        return None if error is None else _Failure(plan, [str(each) for each in plan], error)


def search(judge: Callable[[Plan], Exception | None], seed: int, **most: int) -> Attempts:
    attempts = Attempts(judge)
    limits = SimpleNamespace(**{"tries": 40, "shrinks": 60, **most})
    _Search(attempts, limits.tries, limits.shrinks).look(POSSIBLE, 8, seed)  # type: ignore[arg-type]
    return attempts


def dies_with_two_kills(plan: Plan) -> Exception | None:
    kills = [step for step in plan if step.fault.name == KILL]
    return AssertionError("two kills") if len(kills) > 1 else None


def test_the_smallest_plan_is_what_fails() -> None:
    with pytest.raises(ChaosError) as found:
        search(dies_with_two_kills, 1, tries=200, shrinks=200)
    steps = [line for line in str(found.value).splitlines() if line.startswith("  ")]
    assert steps == ["  1. kill -9, leader", "  2. kill -9, leader"]
    assert 'plan=["kill -9, leader", "kill -9, leader"]' in str(found.value)
    assert isinstance(found.value.__cause__, AssertionError)


def test_a_seed_gives_the_same_plans_again() -> None:
    first, again, other = (search(lambda _: None, seed).plans for seed in (5, 5, 6))
    assert first == again != other
    assert len(first) <= 40
    assert max(map(len, first)) <= 8


def test_the_attempts_after_a_failure_are_limited_and_its_plan_has_truly_failed() -> None:
    attempts = Attempts(dies_with_two_kills)
    with pytest.raises(ChaosError) as found:
        _Search(attempts, 200, 3).look(POSSIBLE, 8, 1)  # type: ignore[arg-type]
    failed = [number for number, plan in enumerate(attempts.plans) if dies_with_two_kills(plan)]
    assert attempts.count - (failed[0] + 1) <= 3
    told = [line for line in str(found.value).splitlines() if line.startswith("  ")]
    assert len(told) == min(len(attempts.plans[number]) for number in failed)


def test_a_failure_of_another_kind_is_not_what_is_looked_for() -> None:
    def judge(plan: Plan) -> Exception | None:
        if len(plan) == 1 and plan[0].fault.name == KILL:
            return OSError("a kill alone")
        return dies_with_two_kills(plan)

    kinds = set()
    for seed in (2, 3):
        attempts = Attempts(judge)
        with pytest.raises(ChaosError) as found:
            _Search(attempts, 200, 200).look(POSSIBLE, 8, seed)  # type: ignore[arg-type]
        first = next(error for each in attempts.plans if (error := judge(each)) is not None)
        assert type(found.value.__cause__) is type(first)
        kinds.add(type(first))
    assert kinds == {OSError, AssertionError}


def test_a_step_is_read_as_it_is_printed() -> None:
    for step in (Step(POSSIBLE[0]), Step(POSSIBLE[-1], 7)):
        assert read_step(str(step), POSSIBLE) == step
    with pytest.raises(ValueError, match="no fault of this test"):
        read_step("kill -9, nobody", POSSIBLE)


def test_one_broker_has_faults_of_calls_and_of_its_process() -> None:
    found = faults_for_a_test(1, 1, has_links=False, programs=["worker"])
    assert Fault(KILL, "worker", True, 6_000, 14_000) in found
    targets = {fault.target for fault in found if (fault.name, fault.target) not in CALLS}
    assert targets == {"worker", Target.ALL}
    with pytest.raises(ValueError, match="no fault has 'isolated'"):
        faults_for_a_test(1, 1, has_links=False, only=["isolated"])
    named = faults_for_a_test(3, 3, has_links=True, only=["answer lost"])
    assert [str(fault) for fault in named] == ["answer lost, Produce", "answer lost, OffsetCommit"]
