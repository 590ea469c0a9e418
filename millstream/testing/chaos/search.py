"""`run`: plans of faults that a seed decides, until one fails; then the smallest that does.

Hypothesis draws the plans and shrinks the one that fails. A cluster is slow, and does not do twice
quite the same, so each plan is tried once, its result is kept, and Hypothesis is told the kept one
when it asks again. When the attempts are used up, plans that were not tried count as good: then the
shrinking ends with the smallest plan that has truly failed.
"""

import random
from collections.abc import Sequence
from typing import Final

from millstream.testing.chaos.schedule import Fault, Target, faults_for_a_test
from millstream.testing.chaos.trial import MOST_CHOICES, Attempt, Step, Trial, read_step
from millstream.testing.local_broker import LocalBroker
from millstream.testing.local_cluster import LocalCluster

HOLD_SECONDS: Final = 1.0
SEEDS: Final = 1 << 31


class ChaosError(AssertionError):
    """A plan in which a program fails. Its cause is what the program, or its test, raised."""


def run(
    kafka: LocalBroker | LocalCluster,
    attempt: Attempt,
    *,
    steps: int = 8,
    tries: int = 10,
    shrinks: int = 20,
    seed: int | None = None,
    plan: Sequence[str] = (),
    only: Sequence[str] = (),
    programs: Sequence[str] = (),
    hold_seconds: float = HOLD_SECONDS,
) -> None:
    """Try a program with `tries` plans of up to `steps` faults; raise ChaosError if one fails.

    `attempt` is called with a `Trial` for each; it raises if something is wrong. After a failure
    there are `shrinks` more attempts with smaller plans. The same `seed` tries the same plans;
    `plan` is tried alone. `only` names faults by a part of their names ("Produce", "kill -9").
    `programs` are names of what can be killed, too (`Trial.program`). A fault lasts for
    `hold_seconds`, or until it has hit a call.

    After each attempt a broker returns to its state at the call, at a new address; a cluster keeps
    its topics.
    """
    taken = {*Target} & {*programs}
    if taken:
        raise ValueError(f"no program can be called {', '.join(sorted(taken))}")
    replicas = min(3, len(kafka.broker_ids)) if isinstance(kafka, LocalCluster) else 1
    possible = faults_for_a_test(
        len(kafka.broker_ids) if isinstance(kafka, LocalCluster) else 1,
        replicas,
        has_links=isinstance(kafka, LocalCluster) and kafka.has_links,
        programs=programs,
        only=only,
    )
    attempts = _Attempts(kafka, attempt, programs, hold_seconds)
    if plan:
        steps_given = tuple(read_step(text, possible) for text in plan)
        failure = attempts.make(steps_given)
        if failure is not None:
            raise ChaosError(failure.told()) from failure.error
        return
    seed = random.randrange(SEEDS) if seed is None else seed
    _Search(attempts, tries, shrinks).look(possible, steps, seed)


class _Failure:
    """What went wrong in an attempt."""

    def __init__(self, plan: tuple[Step, ...], suffered: list[str], error: Exception) -> None:
        self.plan = plan
        self.suffered = suffered
        self.error = error

    def told(self) -> str:
        """Return the plan, what the test said, and how to repeat it."""
        lines = [f"  {number}. {each}" for number, each in enumerate(self.suffered, 1)]
        said = f"{type(self.error).__name__}: {self.error}"
        given = ", ".join(f'"{step}"' for step in self.plan)
        repeat = f"repeat it: chaos.run(..., plan=[{given}])"
        return "\n".join(["after these faults:", *lines, said, repeat])


class _Attempts:
    """Makes attempts, each in a clean cluster."""

    def __init__(
        self,
        kafka: LocalBroker | LocalCluster,
        attempt: Attempt,
        programs: Sequence[str],
        hold_seconds: float,
    ) -> None:
        self.count = 0
        self._kafka = kafka
        self._attempt = attempt
        self._programs = programs
        self._hold_seconds = hold_seconds

    def make(self, plan: tuple[Step, ...]) -> _Failure | None:
        """Try one plan; return what went wrong."""
        kafka = self._kafka
        if isinstance(kafka, LocalBroker) and not self.count:
            kafka.snapshot()
        self.count += 1
        try:
            return self._tried(plan)
        finally:
            if isinstance(kafka, LocalBroker):
                kafka.restore(new_port=True)

    def _tried(self, plan: tuple[Step, ...]) -> _Failure | None:
        trial = Trial(
            self._kafka,
            plan,
            number=self.count,
            hold_seconds=self._hold_seconds,
            programs=self._programs,
        )
        trial.whole.wait()
        try:
            self._attempt(trial)
        except Exception as error:  # noqa: BLE001 - whatever a user's program raises is its failure
            return _Failure(plan, trial.suffered, error)
        assert trial.suffered, "the attempt has used no step: for step in trial: with step: ..."
        return None


class _Search:
    """Lets Hypothesis choose the plans."""

    def __init__(self, attempts: _Attempts, tries: int, shrinks: int) -> None:
        self._attempts = attempts
        self._tries = tries
        self._left = shrinks
        self._known: dict[tuple[Step, ...], _Failure | None] = {}
        self._first: _Failure | None = None
        self._found_in = 0

    def look(self, possible: Sequence[Fault], steps: int, seed: int) -> None:
        """Raise ChaosError with the smallest plan that fails."""
        try:
            from hypothesis import Phase, find, settings
            from hypothesis import strategies as st
            from hypothesis.errors import NoSuchExample
        except ImportError:
            raise ImportError(
                'chaos.run needs hypothesis: pip install "millstream[chaos]"'
            ) from None
        step = st.builds(Step, st.sampled_from(possible), st.integers(0, MOST_CHOICES))
        plans = st.lists(step, min_size=1, max_size=steps).map(tuple)
        how = settings(
            max_examples=self._tries,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
        )
        try:
            smallest = find(plans, self._fails, settings=how, random=random.Random(seed))
        except NoSuchExample:
            return
        failure = self._known[smallest]
        assert failure is not None
        raise ChaosError(
            f"attempt {self._found_in} failed, {self._attempts.count - self._found_in} more made "
            f"its plan smaller; seed={seed}\n{failure.told()}"
        ) from failure.error

    def _fails(self, plan: tuple[Step, ...]) -> bool:
        if plan not in self._known:
            if self._first is not None:
                if not self._left:
                    return False
                self._left -= 1
            self._known[plan] = self._attempts.make(plan)
        failure = self._known[plan]
        if failure is not None and self._first is None:
            self._first, self._found_in = failure, self._attempts.count
        # Another kind of failure is another problem: the smallest plan would be about that one.
        return (
            failure is not None
            and self._first is not None
            and type(failure.error) is type(self._first.error)
        )
