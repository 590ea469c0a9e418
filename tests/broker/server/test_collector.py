"""A full collection that took long is not taken twice of the same objects."""

import gc
from collections.abc import Callable

import pytest

from broker.server.collector import EVERYTHING_SECONDS, FULL_AFTER, LONG_SECONDS, Collector

SHORT_SECONDS = LONG_SECONDS / 2


class Collections:
    """A collector policy with a clock of ours; `done` says what it did."""

    def __init__(self) -> None:
        self.now = 0.0
        self.done: list[str] = []
        self.policy = Collector(
            lambda: self.now, freeze=self._did("freeze"), unfreeze=self._did("unfreeze")
        )

    def _did(self, what: str) -> Callable[[], None]:
        return lambda: self.done.append(what)

    def collect(self, seconds: float, generation: int = 2) -> None:
        self.policy.on_collection("start", {"generation": generation})
        self.now += seconds
        self.policy.on_collection("stop", {"generation": generation})


@pytest.mark.parametrize(
    ("seconds", "generation", "done"),
    [(LONG_SECONDS, 2, ["freeze"]), (SHORT_SECONDS, 2, []), (LONG_SECONDS, 1, [])],
)
def test_only_what_survives_a_long_full_collection_is_frozen(seconds, generation, done) -> None:
    collections = Collections()
    collections.collect(seconds, generation)
    assert collections.done == done


def test_everything_is_looked_at_once_an_hour_and_then_frozen_again() -> None:
    collections = Collections()
    collections.now = EVERYTHING_SECONDS
    collections.collect(LONG_SECONDS)
    collections.collect(LONG_SECONDS)
    assert collections.done == ["unfreeze", "freeze"]


def test_it_is_called_from_start_to_stop_and_freezes_what_is_there() -> None:
    collections = Collections()
    before, thresholds = list(gc.callbacks), gc.get_threshold()
    collections.policy.start()
    assert collections.done == ["freeze"]
    assert gc.callbacks == [*before, collections.policy.on_collection]
    assert gc.get_threshold() == (*thresholds[:2], FULL_AFTER)
    collections.policy.stop()
    collections.policy.stop()
    assert gc.callbacks == before
    assert gc.get_threshold() == thresholds


def test_what_is_made_to_stay_is_not_looked_at_and_frozen() -> None:
    collections = Collections()
    collections.policy.start()
    try:
        with collections.policy.spared():
            assert not gc.isenabled()
            assert collections.done == ["freeze"]
        assert gc.isenabled()
        assert collections.done == ["freeze", "freeze"]
    finally:
        collections.policy.stop()


def test_where_no_node_has_started_nothing_is_spared() -> None:
    collections = Collections()
    with collections.policy.spared():
        assert gc.isenabled()
    assert collections.done == []


def test_frozen_objects_are_still_freed_by_their_count_and_looked_at_no_more() -> None:
    """What the policy rests on."""
    kept = [[number] for number in range(1000)]
    gc.freeze()
    frozen = gc.get_freeze_count()
    try:
        kept.clear()
        assert gc.get_freeze_count() <= frozen - 1000
    finally:
        gc.unfreeze()
