"""The one way to answer later.

A handler that has to wait is a generator. It yields the `Later` that it waits for, is continued
with its value, and returns the answer. A long piece of work yields None at intervals, so that other
connections get their turn.

    def handle(self, context: RequestContext, request: DeleteGroupsRequest) -> Steps[Answer]:
        questions = [self._ask(context, group_id) for group_id in request.groups_names]
        results = []
        for question in questions:
            results.append((yield question))
        return DeleteGroupsResponse(results=results)

While a handler waits, the connection begins its next requests; their answers leave after this one.
A Later that `holds` the connection is for a handler that is not done with its request: the next
requests must not overtake it, and the bytes of its frame stay valid. After any other wait a handler
must not read the frame.

"""

from collections.abc import Callable, Generator, Iterable
from typing import Any, TypeVar

from broker.server.network.request_times import Timing
from broker.server.network.sending import Part

T = TypeVar("T")
R = TypeVar("R")

ITEMS_PER_STEP = 32
"""For items that take some microseconds each."""
Steps = Generator["Later | None", Any, R]
"""Work that waits, or lets others have a turn, and returns an R."""


class Later:
    """An event that happens once. `abandon` is called when the connection that waits is closed."""

    __slots__ = ("_proceed", "holds", "is_done", "value")

    def __init__(self, *, holds: bool = False) -> None:
        self.holds = holds
        self.is_done = False
        self.value: Any = None
        self._proceed: Callable[[], None] | None = None

    def done(self, value: Any = None) -> None:
        """Mark the event as happened, and continue its handler before this returns."""
        assert not self.is_done, (self, self.value, value)
        self.is_done = True
        self.value = value
        proceed = self._proceed
        if proceed is not None:
            self._proceed = None
            proceed()

    def when_done(self, proceed: Callable[[], None]) -> None:
        """Call `proceed` when the event happens; it has not happened so far."""
        self._proceed = proceed

    def abandon(self) -> None:
        """Stop waiting: the connection is closed."""
        self._proceed = None


def happened(value: Any) -> Later:
    """Return a Later that needs no waiting."""
    later = Later()
    later.done(value)
    return later


def each(
    items: Iterable[T], make: Callable[[T], R], per_step: int = ITEMS_PER_STEP
) -> Steps[list[R]]:
    """Call `make` with every item, a number of them per step. The items must not change."""
    made: list[R] = []
    for item in items:
        made.append(make(item))
        if not len(made) % per_step:
            yield None
    return made


def all_values(laters: Iterable[Later]) -> Steps[list[Any]]:
    """Wait until all events have happened, and return their values."""
    values: list[Any] = []
    for later in laters:
        value = yield later
        values.append(value)
    return values


Making = Steps[list[Part] | None]
"""A generator that returns one answer, or None if the client wants none."""


class Place:
    """The place of one answer in the order of its connection, and the generator that makes it."""

    __slots__ = ("awaited", "is_done", "parts", "steps", "timing")

    def __init__(self, steps: Making | None, timing: Timing | None = None) -> None:
        self.steps = steps
        self.timing = timing
        """None for an answer that was made at once."""
        self.awaited: Later | None = None
        self.is_done = False
        self.parts: list[Part] = []

    @property
    def holds(self) -> bool:
        """True if no other request may be begun before this one goes on."""
        return self.awaited is None or self.awaited.holds

    def note_wait(self, now: Callable[[], float]) -> None:
        """Begin to wait; only the first time counts, as in Kafka."""
        if self.timing is not None and self.timing.waits_since is None:
            self.timing.waits_since = now()

    def finish(self, parts: list[Part], now: Callable[[], float]) -> None:
        """Take the answer."""
        self.steps, self.parts, self.is_done = None, parts, True
        if self.timing is not None:
            self.timing.ready = now()


def waiting(until: Later) -> Making:
    """Make no answer, but wait: a connection is muted by a place that holds it."""
    yield until
    return None
