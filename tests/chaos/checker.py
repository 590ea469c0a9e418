"""The anomalies that no history may show, whatever the faults.

The rules are those of Jepsen's Kafka workload, in our own words (the tests beside this file show
each by example). They use two maps from the history:

- the *order* of each key: the values by offset. Every poll contributes to it, also one with the
  outcome `info`, for a consumer may only read committed records. A send contributes to it if its
  outcome is ok, or if it is `info` and one of its values was read.
- the *writer* of each value: every value is sent once.

Offsets need not be consecutive (markers of transactions have some), so distances are counted in
known values. Pure: no clock, no file.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from tests.chaos.cycles import components, graph_of, process_edges, realtime_edges
from tests.chaos.history import Key, Kind, Operation, Outcome, Value


class Anomaly(NamedTuple):
    """One violation of `rule`."""

    rule: str
    key: Key
    value: Value | None
    detail: str


class Facts:
    """The indexes of a history that the rules share."""

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
        # The rank of an offset among the known ones, and of a value at its last offset.
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
        """Return the operation that sent a value."""
        return self.operations[self.writer_of[key, value]]


def _memberships(operations: Sequence[Operation]) -> Iterator[bool]:
    """Yield for each operation whether its process is a group member, before or after it."""
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
    """Return all anomalies of a history, which must end with a read of all records."""
    facts = Facts(operations)
    return [anomaly for rule in RULES for anomaly in rule(facts)]


# Offsets and values.


def inconsistent_offsets(facts: Facts) -> Iterator[Anomaly]:
    """An offset has the same value in all reads and acknowledgements."""
    for key, offsets in facts.values_at.items():
        for offset, values in offsets.items():
            if len(values) > 1:
                text = f"at offset {offset} stood {sorted(values)}"
                yield Anomaly("inconsistent-offsets", key, None, text)


def duplicate(facts: Facts) -> Iterator[Anomaly]:
    """A value has one offset."""
    for key, offsets in facts.values_at.items():
        places: dict[Value, list[int]] = defaultdict(list)
        for offset, values in offsets.items():
            for value in values:
                places[value].append(offset)
        for value, found in places.items():
            if len(found) > 1:
                yield Anomaly("duplicate", key, value, f"stood at offsets {sorted(found)}")


def unknown_value(facts: Facts) -> Iterator[Anomaly]:
    """Every value that is read was sent."""
    for key, value in facts.readers_of:
        if (key, value) not in facts.writer_of:
            yield Anomaly("unknown-value", key, value, "was read, and nobody has sent it")


def offset_went_back(facts: Facts) -> Iterator[Anomaly]:
    """A send that starts after an acknowledgement gets a higher offset."""
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


# Lost and unexpected values.


def lost_write(facts: Facts) -> Iterator[Anomaly]:
    """Every written value is read if a later one is read."""
    read_up_to: dict[Key, int] = defaultdict(lambda: -1)
    for operation in facts.operations:
        if operation.outcome is Outcome.OK:
            for found in operation.reads:
                place = facts.place_of[found.key][found.offset]
                read_up_to[found.key] = max(read_up_to[found.key], place)
    for (key, value), place in facts.last_place.items():
        if place > read_up_to[key] or (key, value) in facts.readers_of:
            continue
        # The value has an offset, so its send counts as written; no consumer has read it.
        writer = facts.writer(key, value)
        text = f"{_who(writer)} sent it, and nobody read it though later ones were read"
        yield Anomaly("lost-write", key, value, text)


def unseen(facts: Facts) -> Iterator[Anomaly]:
    """Every acknowledged value is read by the end."""
    for (key, value), at in facts.writer_of.items():
        writer = facts.operations[at]
        if writer.outcome is Outcome.OK and (key, value) not in facts.readers_of:
            yield Anomaly("unseen", key, value, f"{_who(writer)} sent it, and it was never read")


def aborted_read(facts: Facts) -> Iterator[Anomaly]:
    """No value of a failed send is read (G1a)."""
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
    """No operation reads the values that it sends."""
    for operation in facts.operations:
        sent = {(one.key, one.value) for one in operation.sends}
        for found in operation.reads:
            if (found.key, found.value) in sent:
                text = f"{_who(operation)} read its own send"
                yield Anomaly("precommitted-read", found.key, found.value, text)


# Order.


def order_within_polls(facts: Facts) -> Iterator[Anomaly]:
    """One poll returns the values of a key in order and without a gap.

    Group members are exempt: a poll may get a key back at the group's committed offset.
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
    """The sends of one operation have ascending offsets; others may be between them."""
    for operation in facts.operations:
        for key, places in _sent_places(facts, operation).items():
            for (before, _), (after, value) in pairwise(places):
                if after <= before:
                    text = _moved(operation, before, after)
                    yield Anomaly("int-nonmonotonic-send", key, value, text)


def order_of_polls(facts: Facts) -> Iterator[Anomaly]:
    """A process continues at its own position in each key.

    It forgets the keys that it gives back or seeks in, and all keys when it crashes. Group members
    are exempt: they continue at the group's committed offsets.
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
    """The sends of a process have ascending offsets in each key."""
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


# Cycles.


def circular_flow(facts: Facts) -> Iterator[Anomaly]:
    """No operations depend on each other in a cycle (G1c).

    The rule is named after the fewest kinds of edges that make the cycle: from write to read; with
    the order of each process; or with the order in real time.
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
