"""Errands: when they are tried, what survives a hand-over, and how many are remembered."""

import asyncio
from dataclasses import asdict, dataclass

import pytest

from common.processing import external_effects
from common.processing.changelog import changelog_of
from common.processing.external_effects import ErrandStore
from common.processing.outbox import Outbox
from tests.lib.pipeline_bus import Bus

TOPIC = changelog_of("test", "errands")


@dataclass(frozen=True)
class Job:
    due_ms: int | None
    name: str = ""


def a_store(bus: Bus) -> ErrandStore[Job]:
    store: ErrandStore[Job] = ErrandStore(TOPIC, asdict, lambda row: Job(**row), bus.read_to_end)
    asyncio.run(store.restore([0, 1]))
    return store


def names(store: ErrandStore[Job], now_ms: int, limit: int = 10) -> list[str]:
    return [key for _, key, _ in store.take_due(now_ms, limit)]


def test_errands_are_taken_when_due_earliest_first_so_many_at_a_time() -> None:
    store, outbox = a_store(Bus()), Outbox()
    for key, due_ms in (("late", 30), ("first", 10), ("second", 20), ("done", None)):
        store.put(0, key, Job(due_ms), outbox)
    assert names(store, 9) == []
    assert names(store, 20, limit=1) == ["first"]
    assert names(store, 20) == ["second"]
    assert names(store, 99) == ["late"]


def test_errand_that_was_put_again_counts_as_it_is_now() -> None:
    store, outbox = a_store(Bus()), Outbox()
    store.put(0, "a", Job(10), outbox)
    store.put(0, "a", Job(50), outbox)
    store.put(0, "b", Job(10), outbox)
    store.put(0, "b", Job(None), outbox)
    store.put(1, "a", Job(10, "another"), outbox)
    assert [job.name for _, _, job in store.take_due(49, 10)] == ["another"]
    assert names(store, 50) == ["a"]


def test_next_owner_does_what_was_left() -> None:
    bus, outbox = Bus(), Outbox()
    store = a_store(bus)
    store.put(0, "open", Job(10), outbox)
    store.put(0, "done", Job(None), outbox)
    for change in outbox.changes:
        bus.append(change.topic, change.key, change.value, (), change.partition)
    again = a_store(bus)
    assert names(again, 10) == ["open"]
    assert again.get(0, "done") == Job(None)


def test_only_the_last_done_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external_effects, "DONE_KEPT", 2)
    store, outbox = a_store(Bus()), Outbox()
    store.put(0, "open", Job(10), outbox)
    for key in ("a", "b", "c"):
        store.put(0, key, Job(None), outbox)
    assert store.get(0, "a") is None
    assert [store.get(0, key) for key in ("b", "c", "open")] == [Job(None), Job(None), Job(10)]
