"""When the garbage collector comes in a process that moves records."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from common.process.starting import collect_seldom


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


class Cycle:
    def __init__(self) -> None:
        self.itself = self


def test_records_on_their_way_bring_no_collection_and_cycles_are_still_found() -> None:
    collect_seldom()
    lost = weakref.ref(Cycle())
    on_their_way = [[number] for number in range(10_000)]
    assert lost() is not None
    on_their_way += [[number] for number in range(100_000)]
    assert lost() is None
    assert gc.get_freeze_count()
