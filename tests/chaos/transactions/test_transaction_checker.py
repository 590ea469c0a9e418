"""The checker of transactions finds the anomalies of histories made by hand, and no others."""

import pytest

from tests.chaos.history import Outcome
from tests.chaos.transactions.checker import Half, Transfer, check_copy, check_transfers

OK, FAIL, INFO = Outcome.OK, Outcome.FAIL, Outcome.INFO
INPUTS = {0: [1, 2, 3], 1: [4, 5]}


def rules_of_copy(outputs: dict[int, list[int]]) -> list[str]:
    return [found.rule for found in check_copy(INPUTS, outputs)]


def test_a_copy_that_is_its_input_is_good():
    assert rules_of_copy({0: [1, 2, 3], 1: [4, 5]}) == []


@pytest.mark.parametrize(
    ("outputs", "rules"),
    [
        ({0: [1, 3], 1: [4, 5]}, ["lost-copy"]),
        ({0: [1, 2, 3]}, ["lost-copy", "lost-copy"]),
        ({0: [1, 2, 2, 3], 1: [4, 5]}, ["duplicate-copy"]),
        ({0: [1, 2, 3, 1, 2], 1: [4, 5]}, ["duplicate-copy", "duplicate-copy"]),
        ({0: [1, 3, 2], 1: [4, 5]}, ["copy-out-of-order"]),
        ({0: [1, 2, 3, 9], 1: [4, 5]}, ["unknown-copy"]),
        ({0: [1, 2], 1: [4, 5, 3]}, ["lost-copy", "unknown-copy"]),
    ],
)
def test_a_copy_that_is_not_is_told(outputs, rules):
    assert rules_of_copy(outputs) == rules


TRANSFERS = [
    Transfer(1, 0, 1, 5, OK),
    Transfer(2, 1, 2, 7, FAIL),
    Transfer(3, 2, 0, 9, INFO),
]
WHOLE = {0: [Half(0, 1, -5)], 1: [Half(0, 1, 5)]}
BOTH = {0: [Half(0, 1, -5), Half(2, 3, 9)], 1: [Half(0, 1, 5)], 2: [Half(4, 3, -9)]}


def rules_of_transfers(*reads) -> list[str]:
    return [found.rule for found in check_transfers(TRANSFERS, reads)]


@pytest.mark.parametrize(
    "reads",
    [
        [],
        [WHOLE],
        [BOTH],  # of the outcome info: it may be there
        [{}, WHOLE, BOTH, BOTH],
        [{0: [Half(0, 1, -5)]}, WHOLE],  # one half's marker comes before the other's
        [{0: [Half(0, 1, -5)], 2: [Half(4, 3, -9)]}, BOTH],
        # The second of three reads ends before the first did: its leader was new.
        [BOTH, WHOLE, BOTH],
    ],
)
def test_reads_of_whole_transfers_are_good(reads):
    assert rules_of_transfers(*reads) == []


@pytest.mark.parametrize(
    ("reads", "rules"),
    [
        ([{0: [Half(0, 1, -5)]}], ["torn-transfer", "money"]),
        ([{}], ["lost-transfer"]),
        ([{**WHOLE, 2: [Half(0, 2, 7)]}, WHOLE], ["aborted-read", "money"]),
        (
            [{0: [Half(0, 1, -5), Half(1, 1, -5)], 1: [Half(0, 1, 5)]}],
            ["duplicate-half", "money"],
        ),
        (
            [{0: [Half(0, 1, -5), Half(0, 1, -5)], 1: [Half(0, 1, 5)]}],
            ["read-again", "money"],
        ),
        ([{0: [Half(0, 1, -6)], 1: [Half(0, 1, 5)]}], ["unknown-half", "money"]),
        ([{0: [Half(0, 8, -5)]}, WHOLE], ["unknown-half", "inconsistent-read", "money"]),
        # The other half is missing, although records after it were read.
        ([{0: [Half(2, 3, 9)], 1: [Half(0, 1, 5)], 2: [Half(4, 3, -9)]}, BOTH], ["money"]),
        ([{1: [Half(0, 1, 5)]}, {0: []}], ["money", "lost-transfer"]),
        ([BOTH, WHOLE], ["inconsistent-read"]),
        # The read ends after the missing half.
        ([BOTH, {**BOTH, 0: BOTH[0][1:]}, BOTH], ["inconsistent-read", "money"]),
        ([WHOLE, {0: [Half(3, 1, -5)], 1: [Half(0, 1, 5)]}], ["inconsistent-read", "money"]),
    ],
)
def test_reads_of_anything_else_are_told(reads, rules):
    assert rules_of_transfers(*reads) == rules
