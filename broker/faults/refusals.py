"""Answers that carry the error of a rule where Kafka puts it, made from the request.

The part of the request that is refused is taken out of it, so that the broker does the rest as
always; the entries with the error then join the answer. Where a request lists nothing, the work is
done, and the error replaces what the answer says.
"""

from collections.abc import Mapping
from copy import copy
from typing import Any, Final, NamedTuple

from broker.faults.asked import NameOf, value_of
from broker.faults.places import Kind, Level, Place, fields_of
from common.kafka.protocol.framing import response_class
from common.kafka.protocol.message import Message, Struct

TEXT: Final = "A fault that a test has armed"
"""The message beside the error, where the answer has a field for it."""
_UNKNOWN: Final = (
    *("offset", "watermark", "node_id", "leader_id", "producer_id", "producer_epoch", "port"),
    "timestamp_ms",
)
"""Kafka's answers say -1 in fields that end so, when there is an error."""

Wanted = Mapping[Kind, object]
"""Which entries are refused: the topic, the partition, the group. What is left out is any."""


class Error(NamedTuple):
    """An error, and where it goes."""

    code: int
    place: Place
    wanted: Wanted
    version: int


class Refusal:
    """An answer with an error, perhaps of a part of a request only."""

    def __init__(self, answer: Message, error: Error, name_of: NameOf, *, needs_work: bool) -> None:
        self._answer = answer
        self._error = error
        self._name_of = name_of
        self.needs_work = needs_work
        """True if the rest of the request is to be done, and given to `complete`."""

    def alone(self) -> Message:
        """Return the answer to a request of which nothing is left."""
        return self._answer

    def complete(self, worked: Message) -> Message:
        """Return the answer to the rest of the request with the refused entries added."""
        place, answer = self._error.place, copy(worked)
        if not place.levels:
            return self._answer
        if place.is_listed:
            _merge(answer, self._answer, place.levels)
        if not place.is_listed or not getattr(self._answer, place.levels[0].name):
            self._overlay(answer, place.levels)
        return answer

    def _overlay(self, struct: Struct, levels: tuple[Level, ...]) -> None:
        """Put the error into what the broker answered; its own objects are not changed."""
        level, *rest = levels
        entries = []
        for entry in getattr(struct, level.name) or ():
            if _fits(level, entry, self._error, self._name_of):
                entry = copy(entry)
                if rest:
                    self._overlay(entry, tuple(rest))
                else:
                    _put_error(entry, self._error)
            entries.append(entry)
        setattr(struct, level.name, entries)


def refuse(
    request: Message,
    error: Error,
    name_of: NameOf,
    *,
    listed: Message | None = None,
    is_after: bool = False,
) -> Refusal:
    """Take the refused part out of a request, and return it as an answer.

    `listed` has the partitions of a request that names them in a session; then the request is left
    as it is, and all of it is done. So it is if the error comes after the work.
    """
    answer = response_class(request.__api_key__)()
    place = error.place
    if not place.levels:
        _put_error(answer, error)
        return Refusal(answer, error, name_of, needs_work=is_after)
    if place.is_listed:
        taking = _Taking(error, name_of, takes=not is_after)
        taking.take_out(request if listed is None else listed, answer, 0)
    needs_work = listed is not None or not place.is_listed or _is_left(request, place.levels[0])
    return Refusal(answer, error, name_of, needs_work=needs_work)


def _is_left(request: Struct, level: Level) -> bool:
    """Return whether the request still lists something; null stands for everything there is."""
    return any(
        array is None or len(array) > 0
        for way in level.asked
        for parent in _parents(request, way)
        for array in [getattr(parent, way[-1])]
    )


def _parents(struct: Struct, way: tuple[str, ...]) -> list[Struct]:
    """Return the structs that hold the array at the end of a way."""
    parents = [struct]
    for name in way[:-1]:
        parents = [each for parent in parents for each in getattr(parent, name) or ()]
    return parents


class _Taking:
    """Moves the refused entries of a request to an answer."""

    def __init__(self, error: Error, name_of: NameOf, *, takes: bool) -> None:
        self._error = error
        self._name_of = name_of
        self._takes = takes
        """False if the request keeps what is refused."""

    def take_out(self, asked: Struct, answer: Struct, depth: int) -> None:
        """Move the entries of one level, and of those below."""
        level = self._error.place.levels[depth]
        for way in level.asked:
            for parent in _parents(asked, way):
                array = getattr(parent, way[-1])
                kept = [each for each in array or () if not self._take(each, answer, depth)]
                if array is not None and self._takes:
                    setattr(parent, way[-1], kept)

    def _take(self, entry: Any, answer: Struct, depth: int) -> bool:
        """Move an entry if it is refused; return whether nothing of it is left."""
        level = self._error.place.levels[depth]
        if not _fits(level, entry, self._error, self._name_of):
            return False
        answered = _answer_to(entry, level)
        if depth + 1 == len(self._error.place.levels):
            _put_error(answered, self._error)
            getattr(answer, level.name).append(answered)
            return True
        self.take_out(entry, answered, depth + 1)
        below = self._error.place.levels[depth + 1]
        is_refused = bool(getattr(answered, below.name))
        if is_refused:
            getattr(answer, level.name).append(answered)
        return is_refused and not _is_left(entry, below)


def _fits(level: Level, entry: Any, error: Error, name_of: NameOf) -> bool:
    wanted = error.wanted.get(level.kind)
    return wanted is None or value_of(level.kind, entry, name_of) == wanted


def _answer_to(asked: Any, level: Level) -> Struct:
    """Return an entry of an answer with the names of the request's entry."""
    entry = level.struct()
    for here, there in level.keys:
        value = asked if there == "" else getattr(asked, there)
        element = level.struct.__fields__[here].element
        if isinstance(value, list) and not isinstance(element, str):
            value = [_same(each, element) for each in value]
        setattr(entry, here, value)
    return entry


def _same(asked: Struct, struct: type[Struct]) -> Struct:
    """Return a struct of an answer with the values that the request has under the same names."""
    shared = asked.__fields__.keys() & struct.__fields__.keys()
    return struct(**{name: getattr(asked, name) for name in shared})


def _put_error(struct: Struct, error: Error) -> None:
    """Set the error of an entry, or of a whole answer, and what Kafka says beside it."""
    setattr(struct, error.place.field, error.code)
    for field in fields_of(type(struct), error.version):
        if field.name == "error_message":
            setattr(struct, field.name, TEXT)
        elif field.kind == "records":
            setattr(struct, field.name, b"")
        elif field.kind.startswith("int") and field.name.endswith(_UNKNOWN):
            names = {here for level in error.place.levels for here, _ in level.keys}
            if field.name not in names:
                setattr(struct, field.name, -1)


def _merge(answer: Struct, refused: Struct, levels: tuple[Level, ...]) -> None:
    """Add the refused entries to those of an answer; one for the same thing takes its place."""
    level, *rest = levels
    entries = list(getattr(answer, level.name) or ())
    for entry in getattr(refused, level.name):
        names = [getattr(entry, here) for here, _ in level.keys]
        number = next(
            (
                number
                for number, each in enumerate(entries)
                if names and [getattr(each, here) for here, _ in level.keys] == names
            ),
            None,
        )
        if number is None:
            entries.append(entry)
        elif not rest:
            entries[number] = entry
        else:
            entries[number] = copy(entries[number])
            _merge(entries[number], entry, tuple(rest))
    setattr(answer, level.name, entries)
