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
from tests.lib.pipeline_processes import Pipeline

KILL_SERVICE, FREEZE_SERVICE, KILL_BROKER, FREEZE_BROKER = (
    "kill -9 of a service",
    "SIGSTOP of a service",
    "kill -9 of a broker",
    "SIGSTOP of a broker",
)
WEIGHTS = {KILL_SERVICE: 5, FREEZE_SERVICE: 2, KILL_BROKER: 3, FREEZE_BROKER: 1}
PAUSE_SECONDS = (3.0, 6.0)
"""The range of the pause between two faults."""
GONE_SECONDS = (0.0, 4.0)
FROZEN_SECONDS = (2.0, 10.0)
"""A range beyond the session timeout, so that the group's generation or the epoch changes."""


class Breaking:
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
        self._cluster, self._pipeline = cluster, pipeline
        self._services, self._source, self._console = services, source, console
        self._executor = ThreadPoolExecutor(len(services) + 1)
        self._repairs: dict[Future[None], str] = {}
        self._busy: set[str] = set()
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
                self.counts[fault] += 1
                self._console.print(
                    f"{passed:7.1f} s  {fault}: {victim} for {hold_seconds:.1f} s; {describe()}"
                )
                repair = self._executor.submit(self._suffer, fault, victim, hold_seconds)
                self._repairs[repair] = f"{fault}: {victim}"
            time.sleep(self._source.uniform(*PAUSE_SECONDS))
        wait(self._repairs)
        errors = ((what, repair.exception()) for repair, what in self._repairs.items())
        self.problems += [f"{what}: {error!r}" for what, error in errors if error is not None]

    def _choose(self) -> tuple[str, str | None, float]:
        """Choose a fault, its victim and its duration; the victim is None if all are busy."""
        (fault,) = self._source.choices(list(WEIGHTS), list(WEIGHTS.values()))
        is_kill = fault in {KILL_SERVICE, KILL_BROKER}
        hold_seconds = self._source.uniform(*(GONE_SECONDS if is_kill else FROZEN_SECONDS))
        brokers = [f"broker {one}" for one in self._cluster.broker_ids]
        with self._lock:
            if fault in {KILL_BROKER, FREEZE_BROKER}:
                whole = [] if self._busy & {*brokers} else brokers
            else:
                whole = [one for one in self._services if one not in self._busy]
            victim = self._source.choice(whole) if whole else None
            if victim is not None:
                self._busy.add(victim)
        return fault, victim, hold_seconds

    def _suffer(self, fault: str, victim: str, hold_seconds: float) -> None:
        """Start and end a fault; a victim that does not recover stays busy, and is a problem."""
        name = victim.removeprefix("broker ")
        if fault == KILL_BROKER:
            self._cluster.kill(int(name))
            time.sleep(hold_seconds)
            self._cluster.start(int(name))
        elif fault == FREEZE_BROKER:
            self._cluster.pause(int(name))
            time.sleep(hold_seconds)
            self._cluster.resume(int(name))
        elif fault == KILL_SERVICE:
            self._pipeline.end(name, kill=True)
            time.sleep(hold_seconds)
            self._pipeline.start_again(name)
        else:
            self._pipeline.programs[name].pause()
            time.sleep(hold_seconds)
            self._pipeline.programs[name].resume()
        with self._lock:
            self._busy.discard(victim)
