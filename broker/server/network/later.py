"""The one way to answer later.

A handler that has to wait is a generator. It yields the `Later` that it waits for, is continued
with that one's value, and returns the answer. In a long piece of work it yields None now and then,
so that other connections get their turn.

    def handle(self, context: RequestContext, request: DeleteGroupsRequest) -> Steps[Answer]:
        questions = [self._ask(context, group_id) for group_id in request.groups_names]
        results = []
        for question in questions:
            results.append((yield question))
        return DeleteGroupsResponse(results=results)

While a handler waits, the connection begins its next requests; their answers leave after this one.
A Later that `holds` the connection is for a handler that is not done with its request: what follows
must not overtake it, and the bytes of its frame stay where they are. After any other wait nothing
may look at the frame.
"""

from collections.abc import Callable, Generator, Iterable
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

ITEMS_PER_STEP = 32
"""For what takes some microseconds each."""
Steps = Generator["Later | None", Any, R]
"""Work that waits, or lets others have a turn, and returns an R."""


class Later:
    """Something that happens once. `abandon` is called instead of waiting on when nobody waits."""

    __slots__ = ("_proceed", "holds", "is_done", "value")

    def __init__(self, *, holds: bool = False) -> None:
        self.holds = holds
        self.is_done = False
        self.value: Any = None
        self._proceed: Callable[[], None] | None = None

    def done(self, value: Any = None) -> None:
        """Let it have happened, and continue what waits for it before this returns."""
        assert not self.is_done, (self, self.value, value)
        self.is_done = True
        self.value = value
        proceed = self._proceed
        if proceed is not None:
            self._proceed = None
            proceed()

    def when_done(self, proceed: Callable[[], None]) -> None:
        """Call `proceed` when it happens, which is not yet."""
        self._proceed = proceed

    def abandon(self) -> None:
        """Take note that nobody waits any more: the connection is closed."""
        self._proceed = None


def happened(value: Any) -> Later:
    """Return a Later that needs no waiting."""
    later = Later()
    later.done(value)
    return later


def each(
    items: Iterable[T], make: Callable[[T], R], per_step: int = ITEMS_PER_STEP
) -> Steps[list[R]]:
    """Make something of every item, so many in a step. The items must not change meanwhile."""
    made: list[R] = []
    for item in items:
        made.append(make(item))
        if not len(made) % per_step:
            yield None
    return made


def all_values(laters: Iterable[Later]) -> Steps[list[Any]]:
    """Wait until all have happened, and return their values."""
    values: list[Any] = []
    for later in laters:
        value = yield later
        values.append(value)
    return values
