"""Letting go of a large message that is done with, step by step.

A million entries are freed for 200 ms, all at once when the last reference to their list goes. So
each is held once more, the list goes, and then they do, a few in a step. Nothing but the message
itself is changed: a list in it may be somebody's who keeps it, and so may an entry.
"""

from collections import deque
from collections.abc import Iterator
from functools import cache
from itertools import islice
from traceback import clear_frames, walk_tb

from broker.protocol.message import Message, Struct
from broker.protocol.wire import DecodeError
from broker.server.network.walks import QUICK_ITEMS_PER_STEP, Steps, emptied


def let_go(message: Message) -> Steps[None]:
    """Take all entries out of a message that nobody looks at any more."""
    held: deque[list[object]] = deque()
    entries = _entries_of(message)
    while some := [*islice(entries, QUICK_ITEMS_PER_STEP)]:
        held.append(some)
        yield
    for name, _ in _arrays_of(type(message)):
        setattr(message, name, [])
    while held:
        # The first first: what has entries goes before they do.
        held.popleft()
        yield


def let_go_of_begun(error: DecodeError) -> Steps[None]:
    """Let go of the arrays that were being decoded when a message turned out to be none.

    Nobody has them but the decoder, whose frame the error holds.
    """
    begun: list[list[object]] = []
    for raised in (error, error.__cause__):
        if raised is not None:
            for frame, _ in walk_tb(raised.__traceback__):
                begun += [value for value in frame.f_locals.values() if isinstance(value, list)]
            clear_frames(raised.__traceback__)
    for entries in begun:
        yield from emptied(entries)


def has_more_than(count: int, message: Message) -> bool:
    """Tell whether there are more entries than so many in all arrays of a message together."""
    return next(islice(_entries_of(message), count, None), message) is not message


def _entries_of(struct: Struct) -> Iterator[object]:
    """Give the entries of all arrays, each before its own."""
    for name, has_arrays in _arrays_of(type(struct)):
        entries = getattr(struct, name) or ()
        if has_arrays:
            for entry in entries:
                yield entry
                yield from _entries_of(entry)
        else:
            yield from entries


@cache
def _arrays_of(struct: type[Struct]) -> tuple[tuple[str, bool], ...]:
    """Name the arrays of a struct; with each, whether its entries have arrays."""
    return tuple(
        (name, isinstance(field.element, type) and bool(_arrays_of(field.element)))
        for name, field in struct.__fields__.items()
        if field.kind == "array"
    )
