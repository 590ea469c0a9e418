"""A network that delays, loses, duplicates and reorders messages, with cuts in one direction."""

from collections.abc import Callable
from dataclasses import dataclass

from broker.raft.output import Envelope
from tests.sim.scheduler import Scheduler


@dataclass
class Weather:
    """The faults of the network, as probabilities."""

    loss: float = 0.0
    duplication: float = 0.0
    slowness: float = 0.0
    """The share of messages that take up to `slow_ms` instead of `delay_ms` and are overtaken."""
    delay_ms: int = 4
    slow_ms: int = 80


class SimulatedNetwork:
    """Carries envelopes, and calls `deliver` with each at its destination."""

    def __init__(self, scheduler: Scheduler, deliver: Callable[[Envelope], None]) -> None:
        self.weather = Weather()
        self.cut: set[tuple[int, int]] = set()
        """The cut links as (source, destination)."""
        self._scheduler = scheduler
        self._deliver = deliver

    def send(self, envelope: Envelope) -> None:
        """Send a message."""
        random, weather = self._scheduler.random, self.weather
        copies = 1 + (random.random() < weather.duplication)
        for _ in range(copies):
            if random.random() < weather.loss:
                continue
            delay_ms = random.randint(1, weather.delay_ms)
            if random.random() < weather.slowness:
                delay_ms = random.randint(1, weather.slow_ms)
            self._scheduler.after(delay_ms, lambda: self._arrive(envelope))

    def _arrive(self, envelope: Envelope) -> None:
        if (envelope.source, envelope.destination) not in self.cut:
            self._deliver(envelope)

    def isolate(self, node_id: int, others: list[int], *, inbound: bool, outbound: bool) -> None:
        """Cut a node off, in one direction or both."""
        if inbound:
            self.cut |= {(other, node_id) for other in others}
        if outbound:
            self.cut |= {(node_id, other) for other in others}
