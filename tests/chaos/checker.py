"""What a history may not show, whatever broke meanwhile.

The rules are those of Jepsen's Kafka workload, in our own words (the tests beside this file say by
example what each means). They rest on two maps that the history itself gives:

- the *order* of each key: which values stood at which offset. Every poll tells of it, even one
  that did not end well, for a consumer may only ever see what is safe. A send tells of it when it
  is ok, or when nobody knows but something of it was read.
- the *writer* of each value: values are sent once.

Offsets need not be consecutive (markers of transactions take some), so distances are counted in
values that are known. Pure: no clock, no file.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from tests.chaos.cycles import components, graph_of, process_edges, realtime_edges
from tests.chaos.history import Key, Kind, Operation, Outcome, Value


class Anomaly(NamedTuple):
    """One thing that must not be; `rule` is its name."""

    rule: str
    key: Key
    value: Value | None
    detail: str


class Facts:
    """What all rules look up in a history."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = operations
        self.writer_of: dict[tuple[Key, Value], int] = {}
        self.readers_of: dict[tuple[Key, Value], list[int]] = defaultdict(list)
        for at, operation in enumerate(operations):
            for sent in operation.sends:
                assert (sent.key, sent.value) not in self.writer_of, f"{sent} was sent twice"
                self.writer_of[sent.key, sent.value] = at
            for found in operation.reads:
                self.readers_of[found.key, found.value].append(at)
        self.is_member = list(_memberships(operations))
        self.is_written = [self._is_written(operation) for operation in operations]
        self.values_at: dict[Key, dict[int, set[Value]]] = defaultdict(lambda: defaultdict(set))
        for at, operation in enumerate(operations):
            for found in operation.reads:
                self.values_at[found.key][found.offset].add(found.value)
            for sent in operation.sends if self.is_written[at] else ():
                if sent.offset is not None:
                    self.values_at[sent.key][sent.offset].add(sent.value)
        # The place of an offset among those that are known, and of a value where it stood last.
        self.place_of = {
            key: {offset: place for place, offset in enumerate(sorted(offsets))}
            for key, offsets in self.values_at.items()
        }
        self.last_place = {
            (key, value): self.place_of[key][offset]
            for key, offsets in self.values_at.items()
            for offset in sorted(offsets)
            for value in offsets[offset]
        }

    def _is_written(self, operation: Operation) -> bool:
        if operation.outcome is Outcome.INFO:
            return any((sent.key, sent.value) in self.readers_of for sent in operation.sends)
        return operation.outcome is Outcome.OK

    def writer(self, key: Key, value: Value) -> Operation:
        """Give the operation that sent a value."""
        return self.operations[self.writer_of[key, value]]


def _memberships(operations: Sequence[Operation]) -> Iterator[bool]:
    """Give for each operation whether its process is a member of a group, or has just been one."""
    members: set[int] = set()
    for operation in operations:
        was_member = operation.process in members
        if operation.kind is Kind.SUBSCRIBE:
            members.add(operation.process)
        elif operation.kind in {Kind.ASSIGN, Kind.CRASH}:
            members.discard(operation.process)
        yield was_member or operation.process in members


Rule = Callable[[Facts], Iterator[Anomaly]]


def check(operations: Sequence[Operation]) -> list[Anomaly]:
    """Give everything in a history that must not be; it must end with everything read."""
    facts = Facts(operations)
    return [anomaly for rule in RULES for anomaly in rule(facts)]


# What stands where.


def inconsistent_offsets(facts: Facts) -> Iterator[Anomaly]:
    """One offset has one value, for everybody and for ever."""
    for key, offsets in facts.values_at.items():
        for offset, values in offsets.items():
            if len(values) > 1:
                text = f"at offset {offset} stood {sorted(values)}"
                yield Anomaly("inconsistent-offsets", key, None, text)


def duplicate(facts: Facts) -> Iterator[Anomaly]:
    """A value that was sent once stands once."""
    for key, offsets in facts.values_at.items():
        places: dict[Value, list[int]] = defaultdict(list)
        for offset, values in offsets.items():
            for value in values:
                places[value].append(offset)
        for value, found in places.items():
            if len(found) > 1:
                yield Anomaly("duplicate", key, value, f"stood at offsets {sorted(found)}")


def unknown_value(facts: Facts) -> Iterator[Anomaly]:
    """What is read was sent."""
    for key, value in facts.readers_of:
        if (key, value) not in facts.writer_of:
            yield Anomaly("unknown-value", key, value, "was read, and nobody has sent it")


def offset_went_back(facts: Facts) -> Iterator[Anomaly]:
    """Who sends after a value was acknowledged stands behind it."""
    sends = defaultdict(list)
    for operation in facts.operations:
        if operation.outcome is Outcome.OK:
            for sent in operation.sends:
                if sent.offset is not None:
                    sends[sent.key].append((operation, sent.offset, sent.value))
    for key, found in sends.items():
        ended = sorted(found, key=lambda one: one[0].end_ms)
        highest, at = -1, 0
        for operation, offset, value in sorted(found, key=lambda one: one[0].start_ms):
            while at < len(ended) and ended[at][0].end_ms < operation.start_ms:
                highest = max(highest, ended[at][1])
                at += 1
            if offset <= highest:
                text = f"{_who(operation)} got offset {offset} after {highest} was acknowledged"
                yield Anomaly("offset-went-back", key, value, text)


# What is there and what is not.


def lost_write(facts: Facts) -> Iterator[Anomaly]:
    """What was acknowledged is read by whoever reads past it."""
    read_up_to: dict[Key, int] = defaultdict(lambda: -1)
    for operation in facts.operations:
        if operation.outcome is Outcome.OK:
            for found in operation.reads:
                place = facts.place_of[found.key][found.offset]
                read_up_to[found.key] = max(read_up_to[found.key], place)
    for (key, value), place in facts.last_place.items():
        if place > read_up_to[key] or (key, value) in facts.readers_of:
            continue
        # It is in the order and nobody has read it: so it was sent, and counts as written.
        writer = facts.writer(key, value)
        text = f"{_who(writer)} sent it, and nobody read it though later ones were read"
        yield Anomaly("lost-write", key, value, text)


def unseen(facts: Facts) -> Iterator[Anomaly]:
    """At the end everything that was acknowledged has been read."""
    for (key, value), at in facts.writer_of.items():
        writer = facts.operations[at]
        if writer.outcome is Outcome.OK and (key, value) not in facts.readers_of:
            yield Anomaly("unseen", key, value, f"{_who(writer)} sent it, and it was never read")


def aborted_read(facts: Facts) -> Iterator[Anomaly]:
    """What certainly was not sent is not read (G1a)."""
    for (key, value), readers in facts.readers_of.items():
        if (key, value) not in facts.writer_of:
            continue
        writer = facts.writer(key, value)
        for at in readers:
            reader = facts.operations[at]
            if writer.outcome is Outcome.FAIL and reader.outcome is Outcome.OK:
                text = f"{_who(writer)} failed to send it, {_who(reader)} read it"
                yield Anomaly("aborted-read", key, value, text)


def precommitted_read(facts: Facts) -> Iterator[Anomaly]:
    """Nobody reads what it is only about to send."""
    for operation in facts.operations:
        sent = {(one.key, one.value) for one in operation.sends}
        for found in operation.reads:
            if (found.key, found.value) in sent:
                text = f"{_who(operation)} read its own send"
                yield Anomaly("precommitted-read", found.key, found.value, text)


# In which order.


def order_within_polls(facts: Facts) -> Iterator[Anomaly]:
    """One poll gives each value once, in order, and leaves none out.

    A member of a group may get a key back in the middle of a poll, at what the group committed.
    """
    for at, operation in enumerate(facts.operations):
        if facts.is_member[at]:
            continue
        by_key: dict[Key, list[tuple[int, Value]]] = defaultdict(list)
        for found in operation.reads:
            if found.key not in operation.rebalanced:
                place = facts.place_of[found.key][found.offset]
                by_key[found.key].append((place, found.value))
        for key, places in by_key.items():
            for (before, _), (after, value) in pairwise(places):
                if after != before + 1:
                    rule = "int-poll-skip" if after > before else "int-nonmonotonic-poll"
                    yield Anomaly(rule, key, value, _moved(operation, before, after))


def order_within_sends(facts: Facts) -> Iterator[Anomaly]:
    """One operation's sends stand in their order; others may stand between them."""
    for operation in facts.operations:
        for key, places in _sent_places(facts, operation).items():
            for (before, _), (after, value) in pairwise(places):
                if after <= before:
                    text = _moved(operation, before, after)
                    yield Anomaly("int-nonmonotonic-send", key, value, text)


def order_of_polls(facts: Facts) -> Iterator[Anomaly]:
    """A process goes on where it was, key by key.

    It forgets the keys it gives back or seeks in, and everything when it crashes. A member of a
    group does not go on where it was but where the group is.
    """
    position: dict[int, dict[Key, int]] = defaultdict(dict)
    for at, operation in enumerate(facts.operations):
        known = position[operation.process]
        if operation.kind in {Kind.ASSIGN, Kind.SUBSCRIBE, Kind.CRASH}:
            kept = set(operation.keys) - set(operation.rebalanced)
            position[operation.process] = {key: known[key] for key in kept & known.keys()}
        if operation.outcome is not Outcome.OK or facts.is_member[at]:
            continue
        for key in operation.rebalanced:
            known.pop(key, None)
        first: dict[Key, tuple[int, Value]] = {}
        for found in operation.reads:
            place = facts.place_of[found.key][found.offset]
            first.setdefault(found.key, (place, found.value))
        for key, (place, value) in first.items():
            if key in known and key not in operation.rebalanced and place != known[key] + 1:
                rule = "poll-skip" if place > known[key] else "nonmonotonic-poll"
                yield Anomaly(rule, key, value, _moved(operation, known[key], place))
        for found in operation.reads:
            known[found.key] = facts.place_of[found.key][found.offset]


def order_of_sends(facts: Facts) -> Iterator[Anomaly]:
    """What a process sends later stands later."""
    last: dict[tuple[int, Key], int] = {}
    for operation in facts.operations:
        for key, places in _sent_places(facts, operation).items():
            who = operation.process, key
            place, value = places[0]
            if place <= last.get(who, -1):
                text = _moved(operation, last[who], place)
                yield Anomaly("nonmonotonic-send", key, value, text)
            last[who] = max(last.get(who, -1), *(place for place, _ in places))


def _sent_places(facts: Facts, operation: Operation) -> dict[Key, list[tuple[int, Value]]]:
    places: dict[Key, list[tuple[int, Value]]] = defaultdict(list)
    if operation.outcome is not Outcome.FAIL:
        for sent in operation.sends:
            if (sent.key, sent.value) in facts.last_place:
                places[sent.key].append((facts.last_place[sent.key, sent.value], sent.value))
    return places


# What depends on itself.


def circular_flow(facts: Facts) -> Iterator[Anomaly]:
    """Nothing is read before it is sent, not even in a roundabout way (G1c).

    The least that makes the circle names it: what was written and read; what each process did one
    after the other besides; or what had ended before other things began.
    """
    operations = facts.operations
    written_read = [
        (facts.writer_of[key, value], at)
        for (key, value), readers in facts.readers_of.items()
        if (key, value) in facts.writer_of
        for at in readers
        if facts.writer_of[key, value] != at
    ]
    by_process = list(process_edges(operations))
    in_time = list(realtime_edges(operations))
    told: set[int] = set()
    for rule, edges in (
        ("G1c", [written_read]),
        ("G1c-process", [written_read, by_process]),
        ("G1c-realtime", [written_read, by_process, in_time]),
    ):
        for found in components(graph_of(*edges)):
            if told.isdisjoint(found):
                some = "; ".join(_who(operations[at]) for at in sorted(found)[:4])
                yield Anomaly(rule, "", None, f"{len(found)} operations in a circle: {some}")
            told.update(found)


def _who(operation: Operation) -> str:
    return f"process {operation.process} ({operation.kind} at {operation.start_ms:.0f} ms)"


def _moved(operation: Operation, before: int, after: int) -> str:
    return f"{_who(operation)} went from the value numbered {before} to {after}"


RULES: tuple[Rule, ...] = (
    inconsistent_offsets,
    duplicate,
    unknown_value,
    offset_went_back,
    lost_write,
    unseen,
    aborted_read,
    precommitted_read,
    order_within_polls,
    order_within_sends,
    order_of_polls,
    order_of_sends,
    circular_flow,
)
