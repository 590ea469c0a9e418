"""One attempt of a user's program: the steps of a plan, each with one fault."""

import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import MappingProxyType, TracebackType
from typing import Any, Final, NamedTuple

from millstream.testing.chaos.breaking import Breaking, NotWholeError, OneBroker, Program
from millstream.testing.chaos.schedule import (
    CALLS,
    Fault,
)
from millstream.testing.faults import Rule
from millstream.testing.local_broker import LocalBroker
from millstream.testing.local_cluster import LocalCluster
from millstream.testing.topics import ADMIN_SETTINGS

WHOLE_SECONDS: Final = 60.0
ASK_SECONDS: Final = 5.0
POLL_SECONDS: Final = 0.02
MOST_CHOICES: Final = 100
_STEP: Final = re.compile(r"(?P<fault>.+?)(?: #(?P<choice>\d{1,9}))?")
# What a fault starts again ends with this thread, on some systems: it lives until the exit.
_LATER: Final = ThreadPoolExecutor(1, "chaos")


class Step(NamedTuple):
    """A fault, and the number that decides its victims."""

    fault: Fault
    choice: int = 0

    def __str__(self) -> str:
        return f"{self.fault} #{self.choice}" if self.choice else str(self.fault)


def read_step(text: str, possible: Sequence[Fault]) -> Step:
    """Read a step as it is printed; raise ValueError."""
    found = _STEP.fullmatch(text)
    for fault in possible:
        if found is not None and found["fault"] == str(fault):
            return Step(fault, int(found["choice"] or 0))
    raise ValueError(f"{text!r} is no fault of this test")


class Whole:
    """Looks at all partitions of a cluster."""

    def __init__(self, kafka: LocalBroker | LocalCluster) -> None:
        from confluent_kafka.admin import AdminClient

        self._admin = AdminClient({**ADMIN_SETTINGS, **kafka.client_settings(), "log_level": 0})

    def leaders(self, topics: Sequence[str]) -> dict[str, int]:
        """Return the leader of each partition of some topics that has one."""
        return {
            name: found.leader
            for name, found in self._partitions(topics).items()
            if found.leader >= 0
        }

    def wait(self) -> None:
        """Wait until each partition has a leader, and all replicas are in sync.

        Raise NotWholeError.
        """
        deadline = time.monotonic() + WHOLE_SECONDS
        while lacking := self._lacking():
            if time.monotonic() > deadline:
                raise NotWholeError(f"after {WHOLE_SECONDS:.0f} s not whole again: {lacking}")
            time.sleep(POLL_SECONDS)

    def _lacking(self) -> str:
        from confluent_kafka import KafkaException

        try:
            found = self._partitions(())
        except KafkaException as error:
            return f"no broker answers: {error}"
        return ", ".join(
            name
            for name, each in found.items()
            if each.leader < 0 or len(each.isrs) < len(each.replicas)
        )

    def _partitions(self, topics: Sequence[str]) -> dict[str, Any]:
        found = self._admin.list_topics(timeout=ASK_SECONDS).topics
        return {
            f"{topic}-{number}": each
            for topic in sorted(topics or found)
            for number, each in sorted(found[topic].partitions.items())
        }


class Trial:
    """What an attempt is given: topics of its own, and the steps to go through.

    Each step is a context manager, in which its fault happens.
    """

    def __init__(
        self,
        kafka: LocalBroker | LocalCluster,
        plan: Sequence[Step],
        *,
        number: int,
        hold_seconds: float,
        programs: Sequence[str] = (),
    ) -> None:
        self.kafka = kafka
        self.number = number
        """The number of the attempt, from 1."""
        self.hold_seconds = hold_seconds
        self.suffered: list[str] = []
        """The faults so far, each with its victims or hits."""
        self._plan = plan
        self._topics: list[str] = []
        self._names = programs
        self._programs: dict[str, Program] = {}
        self.whole = Whole(kafka)
        self.cluster = kafka if isinstance(kafka, LocalCluster) else OneBroker(kafka)

    def name(self, name: str) -> str:
        """Return a name that no other attempt has: for a group, or a transactional id."""
        return f"{name}-{self.number}"

    def topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> str:
        """Create a topic for this attempt alone, and return its name."""
        own = self.name(name)
        self.kafka.create_topic(own, partitions, settings=settings)
        self._topics.append(own)
        return own

    def program(self, name: str, program: Program) -> None:
        """Say what a name of `programs` is: something with `kill()` and `start()`."""
        if name not in self._names:
            raise ValueError(f"{name} is not among the programs of the run: {self._names}")
        self._programs[name] = program

    def __iter__(self) -> Iterator["Turn"]:
        for step in self._plan:
            turn = Turn(self, step)
            yield turn
            assert turn.is_over, "a step is used as `with step:`"

    def breaking(self, source: random.Random) -> Breaking:
        """Return what begins and ends a fault."""
        missing = [name for name in self._names if name not in self._programs]
        assert not missing, f"trial.program was not called for {', '.join(missing)}"
        return Breaking(self.cluster, source, self.whole.wait, programs=self._programs)

    def leaders(self) -> dict[str, int]:
        """Return the leaders of the attempt's partitions."""
        return self.whole.leaders(self._topics)


class Turn:
    """One step. Its fault lasts for a time, or until it has hit a call; the block ends after it.

    After the block the nodes run and all replicas are in sync.
    """

    def __init__(self, trial: Trial, step: Step) -> None:
        self.is_over = False
        self._trial = trial
        self._step = step
        self._breaking = trial.breaking(random.Random(step.choice))
        self._victims: list[int | str] = []
        self._rule: Rule | None = None
        self._ending: Future[list[int]] | None = None

    def __str__(self) -> str:
        return str(self._step)

    def __enter__(self) -> "Turn":
        fault, trial = self._step.fault, self._trial
        self._victims = self._breaking.choose(fault, trial.leaders())
        trial.suffered.append(self._told())
        try:
            self._rule = self._breaking.begin(fault, self._victims)
        except BaseException:
            self._breaking.end(fault, self._victims)
            raise
        deadline = time.monotonic() + trial.hold_seconds
        self._ending = _LATER.submit(self._end_at, deadline)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._ending is not None
        died = self._ending.result()
        self._trial.suffered[-1] = self._told()
        if error is None:
            cluster = self._trial.cluster
            died += [each for each in cluster.node_ids if not cluster.node(each).is_running]
            if died:
                raise NotWholeError(f"node {died[0]} has died by itself: its log says why")
            self._trial.whole.wait()
        self.is_over = True

    def _end_at(self, deadline: float) -> list[int]:
        """End the fault when it has hit, or its time is over; return the nodes that it has not
        killed and that do not run."""
        while time.monotonic() < deadline and not (self._rule is not None and self._rule.hits):
            time.sleep(POLL_SECONDS)
        return self._breaking.end(self._step.fault, self._victims)

    def _told(self) -> str:
        """Return the fault with its victims, or with what it hit."""
        if (self._step.fault.name, self._step.fault.target) in CALLS:
            hits = 0 if self._rule is None else self._rule.hits
            return f"{self._step}: {hits or 'no'} call{'s' * (hits != 1)} hit"
        nodes = [str(each) for each in self._victims if isinstance(each, int)]
        if not nodes or isinstance(self._trial.kafka, LocalBroker):
            return str(self._step)
        return f"{self._step}: node{'s' * (len(nodes) > 1)} {', '.join(nodes)}"


Attempt = Callable[[Trial], None]
