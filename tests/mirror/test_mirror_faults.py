"""A mirror through faults while records come in; `make mirror-faults` takes longer over it."""

from pathlib import Path

import pytest

from tests.mirror.faults.breaking import FAULTS
from tests.mirror.faults.judge import judged
from tests.mirror.faults.run import run

SEED = 3
SECONDS = 1.0
HARDEST = ("the target is frozen", "the mirror is killed")


@pytest.mark.slow
def test_nothing_is_lost_by_a_mirror_that_copies_at_least_once(tmp_path: Path) -> None:
    outcome = run(tmp_path, SEED, SECONDS, is_exactly_once=False, faults=HARDEST)
    assert outcome.problems == []


@pytest.mark.slow
def test_every_record_is_copied_once_whatever_breaks(tmp_path: Path) -> None:
    outcome = run(tmp_path, SEED, SECONDS, is_exactly_once=True)
    assert len(outcome.suffered) == len(FAULTS)
    assert outcome.problems == []


def test_the_judge_sees_what_is_lost_comes_twice_or_out_of_order() -> None:
    written = set(range(6))
    good = judged("orders", [[0, 2, 4], [1, 3, 5]], written, written, once=True)
    assert good.problems == []
    lost = judged("orders", [[0, 2, 4], [1, 5]], written, written, once=True)
    assert lost.problems == ["orders: lost [3]"]
    twice = judged("orders", [[0, 2, 0, 2, 4], [1, 3, 5]], written, written, once=True)
    assert twice.problems == ["orders: 2 more than once: [0, 2]"]
    assert judged("orders", [[0, 2, 0, 2, 4], [1, 3, 5]], written, written, once=False).twice == 2
    turned = judged("orders", [[2, 0, 4], [1, 3, 5]], written, written, once=False)
    assert turned.problems == ["orders: not in the order it was written in"]
    strange = judged("orders", [[0, 2, 4, 9], [1, 3, 5]], written, written, once=True)
    assert strange.problems == ["orders: nobody wrote [9]"]
