"""The checker finds the anomalies of histories made by hand, and none in good ones."""

import io

import pytest

from tests.chaos.checker import check
from tests.chaos.cycles import components
from tests.chaos.history import Kind, Operation, Outcome, Read, Sent, read, write

OK, FAIL, INFO = Outcome.OK, Outcome.FAIL, Outcome.INFO


class Hand:
    """Builds a history: each operation starts after the end of the one before."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._now_ms = 0.0

    def _add(self, process: int, kind: Kind, outcome: Outcome, **fields: object) -> "Hand":
        self._now_ms += 10
        times = {"start_ms": self._now_ms, "end_ms": self._now_ms + 5, **fields}
        self.operations.append(Operation(process, kind, outcome, **times))  # type: ignore[arg-type]
        return self

    def send(self, process: int, *sent: tuple, outcome: Outcome = OK, **fields: object) -> "Hand":
        sends = tuple(Sent(*one) for one in sent)
        return self._add(process, Kind.SEND, outcome, sends=sends, **fields)

    def poll(self, process: int, *found: tuple, outcome: Outcome = OK, **fields: object) -> "Hand":
        reads = tuple(Read(*one) for one in found)
        return self._add(process, Kind.POLL, outcome, reads=reads, **fields)

    def txn(
        self, process: int, sent: list, found: list, outcome: Outcome = OK, **fields: object
    ) -> "Hand":
        sends, reads = tuple(Sent(*one) for one in sent), tuple(Read(*one) for one in found)
        return self._add(process, Kind.TXN, outcome, sends=sends, reads=reads, **fields)

    def assign(self, process: int, *keys: str, rebalanced: tuple = ()) -> "Hand":
        return self._add(process, Kind.ASSIGN, OK, keys=keys, rebalanced=rebalanced)

    def subscribe(self, process: int, *keys: str) -> "Hand":
        return self._add(process, Kind.SUBSCRIBE, OK, keys=keys)

    def crash(self, process: int) -> "Hand":
        return self._add(process, Kind.CRASH, OK)


def rules(hand: Hand) -> set[str]:
    return {anomaly.rule for anomaly in check(hand.operations)}


def written() -> Hand:
    """Return a history with three values at offsets 0, 1, 2 of `a`."""
    return Hand().send(1, ("a", 10, 0)).send(1, ("a", 11, 1)).send(1, ("a", 12, 2))


ALL = (("a", 0, 10), ("a", 1, 11), ("a", 2, 12))

GOOD = {
    "nothing at all": Hand(),
    "everything sent is read": written().poll(2, *ALL),
    "offsets have gaps, as markers of transactions make them": (
        Hand().send(1, ("a", 10, 0)).send(1, ("a", 11, 7)).poll(2, ("a", 0, 10), ("a", 7, 11))
    ),
    "polls go on where the last one ended": written().poll(2, ALL[0]).poll(2, *ALL[1:]),
    "a failed send is never seen": (
        Hand().send(1, ("a", 10, 0)).send(1, ("a", 11), outcome=FAIL).poll(2, ("a", 0, 10))
    ),
    "a send of which nothing is known may be lost": (
        Hand().send(1, ("a", 9), outcome=INFO).send(1, ("a", 10, 0)).poll(2, ("a", 0, 10))
    ),
    "or may be seen": (
        Hand()
        .send(1, ("a", 9), outcome=INFO)
        .send(1, ("a", 10, 1))
        .poll(2, ("a", 0, 9), ("a", 1, 10))
    ),
    "offsets are not told when a broker knew the batch already": (
        Hand().send(1, ("a", 10)).poll(2, ("a", 0, 10))
    ),
    "a client that crashed begins anew": written().poll(2, *ALL).crash(2).poll(2, *ALL),
    "a key assigned anew is read from its start": (
        written()
        .assign(2, "a", rebalanced=("a",))
        .poll(2, *ALL)
        .assign(2, "a", rebalanced=("a",))
        .poll(2, *ALL)
    ),
    "a key that was given back is forgotten": (
        written().assign(2, "a").poll(2, *ALL).assign(2, "b").assign(2, "a").poll(2, *ALL)
    ),
    "members of a group skip what others read": (
        written().subscribe(2, "a").poll(2, ALL[0]).poll(2, ALL[2]).poll(3, *ALL)
    ),
    "a member gets a key back in the middle of a poll": (
        written().subscribe(2, "a").poll(2, *ALL, ALL[0], ALL[1])
    ),
    "a rebalance in the course of a poll moves its position": (
        written().poll(2, ALL[1], ALL[0], rebalanced=("a",)).poll(3, *ALL)
    ),
    "two senders at once come in any order": (
        Hand()
        .send(1, ("a", 10, 1), start_ms=0, end_ms=50)
        .send(2, ("a", 11, 0), start_ms=10, end_ms=60)
        .poll(3, ("a", 0, 11), ("a", 1, 10))
    ),
    "a transaction has room for others between its sends": (
        Hand()
        .txn(1, [("a", 10, 0), ("a", 12, 2)], [], start_ms=0, end_ms=50)
        .send(2, ("a", 11, 1), start_ms=0, end_ms=50)
        .poll(3, *ALL)
    ),
}

BAD = {
    "lost-write": [
        written().poll(2, ALL[0], ALL[2]),
        # An operation with the outcome info is written whole if one of its values was read.
        Hand()
        .send(1, ("a", 10, 0), ("b", 20, 0), outcome=INFO)
        .send(1, ("b", 21, 1))
        .poll(2, ("a", 0, 10), ("b", 1, 21)),
    ],
    "duplicate": [Hand().send(1, ("a", 10)).poll(2, ("a", 0, 10), ("a", 1, 10))],
    "inconsistent-offsets": [
        written().poll(2, *ALL).poll(3, ("a", 0, 10), ("a", 1, 99)).send(4, ("a", 99)),
        # Two sends with the same offset.
        Hand().send(1, ("a", 10, 0)).send(2, ("a", 11, 0)).poll(3, ("a", 0, 10)),
        # The values of a poll with the outcome info must be committed too.
        Hand().send(1, ("a", 10, 0)).poll(2, ("a", 0, 99), outcome=INFO).poll(2, ALL[0]),
    ],
    "unseen": [written().poll(2, *ALL[:2])],
    "unknown-value": [written().poll(2, *ALL, ("a", 3, 77))],
    "aborted-read": [
        Hand().send(1, ("a", 10), outcome=FAIL).poll(2, ("a", 0, 10)),
        Hand().txn(1, [("a", 10)], [], outcome=FAIL).poll(2, ("a", 0, 10)),
    ],
    "precommitted-read": [Hand().txn(1, [("a", 10, 0)], [("a", 0, 10)])],
    "int-poll-skip": [written().poll(2, ALL[0], ALL[2]).poll(3, *ALL)],
    "int-nonmonotonic-poll": [written().poll(2, ALL[1], ALL[0]).poll(3, *ALL)],
    "int-nonmonotonic-send": [
        Hand().txn(1, [("a", 10, 1), ("a", 11, 0)], []).poll(2, ("a", 0, 11), ("a", 1, 10))
    ],
    "poll-skip": [written().poll(2, ALL[0]).poll(2, ALL[2]).poll(3, *ALL)],
    "nonmonotonic-poll": [
        written().poll(2, *ALL).poll(2, ALL[1]),
        written().assign(2, "a").poll(2, *ALL).assign(2, "a", "b").poll(2, *ALL),
    ],
    "nonmonotonic-send": [
        Hand().send(1, ("a", 10, 1)).send(1, ("a", 11, 0)).poll(2, ("a", 0, 11), ("a", 1, 10))
    ],
    "offset-went-back": [
        # A send after an acknowledgement gets a higher offset.
        Hand().send(1, ("a", 10, 5)).send(2, ("a", 11, 3)).poll(3, ("a", 3, 11), ("a", 5, 10))
    ],
    "G1c": [
        Hand()
        .txn(1, [("a", 10, 0)], [("b", 0, 20)], start_ms=0, end_ms=50)
        .txn(2, [("b", 20, 0)], [("a", 0, 10)], start_ms=0, end_ms=50)
    ],
    "G1c-process": [
        # Process 1 reads 20 and then sends 10; process 2 reads 10 and then sends 20.
        Hand()
        .poll(1, ("b", 0, 20), start_ms=0, end_ms=50)
        .send(1, ("a", 10, 0), start_ms=50, end_ms=90)
        .poll(2, ("a", 0, 10), start_ms=0, end_ms=50)
        .send(2, ("b", 20, 0), start_ms=50, end_ms=90)
    ],
    "G1c-realtime": [
        # Read before the start of its send.
        Hand()
        .poll(1, ("a", 0, 10), start_ms=0, end_ms=5)
        .send(2, ("a", 10, 0), start_ms=10, end_ms=20)
    ],
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_history_has_no_anomaly(name: str) -> None:
    assert check(GOOD[name].operations) == []


@pytest.mark.parametrize(
    ("rule", "hand"), [(rule, hand) for rule, hands in BAD.items() for hand in hands]
)
def test_a_bad_history_shows_its_anomaly(rule: str, hand: Hand) -> None:
    assert rule in rules(hand)


def test_each_bad_history_shows_little_else() -> None:
    found = {rule: rules(hands[0]) - {rule} for rule, hands in BAD.items()}
    assert found == {rule: BESIDES.get(rule, set()) for rule in BAD}


# One anomaly often implies another: an impossible order is one in real time too, and a value left
# out of a poll is lost if no other poll reads it.
BESIDES = {
    "lost-write": {"int-poll-skip", "unseen"},
    "inconsistent-offsets": {"G1c-realtime"},
    "nonmonotonic-send": {"offset-went-back"},
}


def test_an_anomaly_names_key_value_and_who() -> None:
    (lost,) = [
        found for found in check(BAD["lost-write"][0].operations) if found.rule == "lost-write"
    ]
    assert (lost.key, lost.value) == ("a", 11)
    assert "process 1" in lost.detail


def test_anomalies_of_one_rule_are_all_told() -> None:
    hand = written().poll(2, ALL[2])
    assert [found.value for found in check(hand.operations) if found.rule == "lost-write"] == [
        10,
        11,
    ]


def test_strongly_connected_components_are_found_in_a_long_chain() -> None:
    count = 50_000  # deeper than Python's stack
    chain = {number: [number + 1] for number in range(count)}
    assert list(components(chain)) == []
    chain[count] = [count - 2]
    assert [sorted(found) for found in components(chain)] == [[count - 2, count - 1, count]]


def test_a_history_is_read_as_it_was_written() -> None:
    hand = (
        written()
        .send(1, ("a", 13), outcome=INFO, error="timed out")
        .poll(2, *ALL, rebalanced=("a",))
        .assign(3, "a", "b")
        .crash(3)
    )
    file = io.StringIO()
    for operation in hand.operations:
        write(operation, file)
    assert list(read(file.getvalue().splitlines())) == hand.operations
