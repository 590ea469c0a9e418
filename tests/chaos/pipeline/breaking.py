"""The faults of the pipeline: services and brokers are killed with -9, or frozen with SIGSTOP.

The seed decides the order of the faults and how long each lasts; the time of the recovery is not
part of the seed.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Self

from rich.console import Console

from millstream.testing import LocalCluster
from millstream.testing.chaos.breaking import Breaking, Victim
from millstream.testing.chaos.schedule import KILL, PAUSE, Fault
from tests.lib.pipeline_processes import Pipeline

SERVICE, BROKER = "service", "broker"
WEIGHTS = {(KILL, SERVICE): 5, (PAUSE, SERVICE): 2, (KILL, BROKER): 3, (PAUSE, BROKER): 1}
PAUSE_SECONDS = (3.0, 6.0)
"""The range of the pause between two faults."""
GONE_SECONDS = (0.0, 4.0)
FROZEN_SECONDS = (2.0, 10.0)
"""A range beyond the session timeout, so that the group's generation or the epoch changes."""


class _Service:
    """A program of the pipeline, for a fault."""

    def __init__(self, pipeline: Pipeline, name: str) -> None:
        self._pipeline, self._name = pipeline, name

    def kill(self) -> None:
        self._pipeline.end(self._name, kill=True)

    def start(self) -> None:
        self._pipeline.start_again(self._name)

    def pause(self) -> None:
        self._pipeline.programs[self._name].pause()

    def resume(self) -> None:
        self._pipeline.programs[self._name].resume()


class PipelineChaos:
    """Starts one fault after the other; each ends while others start.

    One broker fails at a time, as `min.insync.replicas` allows. `problems` names failed recoveries.
    A restarted process ends with the thread that started it, so the threads live until the exit.
    """

    def __init__(
        self,
        cluster: LocalCluster,
        pipeline: Pipeline,
        services: list[str],
        source: random.Random,
        console: Console,
    ) -> None:
        self._brokers: list[Victim] = [*cluster.broker_ids]
        self._services: list[Victim] = [*services]
        self._source, self._console = source, console
        programs = {name: _Service(pipeline, name) for name in services}
        self._breaking = Breaking(cluster, source, lambda: None, programs=programs)
        self._executor = ThreadPoolExecutor(len(services) + 1)
        self._repairs: dict[Future[None], str] = {}
        self._busy: set[Victim] = set()
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._executor.shutdown()

    def go_on(self, seconds: float, describe: Callable[[], str]) -> None:
        """Start faults for `seconds`; return when all victims have recovered."""
        began_at = time.monotonic()
        while (passed := time.monotonic() - began_at) < seconds:
            fault, victim, hold_seconds = self._choose()
            if victim is not None:
                what = f"{fault}{_number(victim)}"
                self.counts[f"{fault.name}, {BROKER if victim in self._brokers else SERVICE}"] += 1
                self._console.print(
                    f"{passed:7.1f} s  {what} for {hold_seconds:.1f} s; {describe()}"
                )
                repair = self._executor.submit(self._suffer, fault, victim, hold_seconds)
                self._repairs[repair] = what
            time.sleep(self._source.uniform(*PAUSE_SECONDS))
        wait(self._repairs)
        errors = ((what, repair.exception()) for repair, what in self._repairs.items())
        self.problems += [f"{what}: {error!r}" for what, error in errors if error is not None]

    def _choose(self) -> tuple[Fault, Victim | None, float]:
        """Choose a fault, its victim and its duration; the victim is None if all are busy."""
        ((name, kind),) = self._source.choices(list(WEIGHTS), list(WEIGHTS.values()))
        hold_seconds = self._source.uniform(*(GONE_SECONDS if name == KILL else FROZEN_SECONDS))
        with self._lock:
            if kind == BROKER:
                whole = [] if self._busy & {*self._brokers} else self._brokers
            else:
                whole = [one for one in self._services if one not in self._busy]
            victim = self._source.choice(whole) if whole else None
            if victim is not None:
                self._busy.add(victim)
        target = victim if isinstance(victim, str) else kind
        return Fault(name, target, True, int(hold_seconds * 1_000), 0), victim, hold_seconds

    def _suffer(self, fault: Fault, victim: Victim, hold_seconds: float) -> None:
        """Start and end a fault; a victim that does not recover stays busy, and is a problem."""
        self._breaking.begin(fault, [victim])
        time.sleep(hold_seconds)
        self.problems += [
            f"node {died} died in: {fault}" for died in self._breaking.end(fault, [victim])
        ]
        with self._lock:
            self._busy.discard(victim)


def _number(victim: Victim) -> str:
    """Return the number of a broker; the name of a service is the target of its fault."""
    return f" {victim}" if isinstance(victim, int) else ""
