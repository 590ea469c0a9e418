"""The place of one answer in the order of its connection."""

from broker.server.network.later import Later, Steps
from broker.server.network.sending import Part

Making = Steps[list[Part] | None]
"""A generator that returns one answer, or None if the client wants none."""


class Place:
    """The place of one answer in the order of its connection, and the generator that makes it."""

    __slots__ = ("awaited", "is_done", "parts", "steps")

    def __init__(self, steps: Making | None) -> None:
        self.steps = steps
        self.awaited: Later | None = None
        self.is_done = False
        self.parts: list[Part] = []

    @property
    def holds(self) -> bool:
        """True if no other request may be begun before this one goes on."""
        return self.awaited is None or self.awaited.holds


def waiting(until: Later) -> Making:
    """Make no answer, but wait: a connection is muted by a place that holds it."""
    yield until
    return None
