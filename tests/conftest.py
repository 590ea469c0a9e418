"""How the tests run here: in which order and process, and with the same examples everywhere.

Hypothesis knows no clock: a busy machine is no bug, so there are no deadlines.
`make check` has fewer examples than `make test` (profile `few`), where a test does not say how
many. `HYPOTHESIS_PROFILE=explore` looks for new examples instead of the same ones; what it finds
becomes an explicit `@example`.
"""

import gc
import os
import signal
from collections import defaultdict
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.lib import side_by_side

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling

    from tests.lib.elasticsearch_server import Elasticsearch

_NEW_OBJECTS = 20_000
"""After so many more it is looked for garbage: nearly all that a test makes is gone without."""

# A run that a script put in the background ignores Ctrl-C, and so would every program that it
# starts: those that are to be stopped by it would run for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "same", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("few", parent=settings.get_profile("same"), max_examples=20)
settings.register_profile("explore", parent=settings.get_profile("same"), derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage meanwhile: what is imported and collected here stays until the end.

    Every process collects all the tests, and a third of that was looking through them again.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(_NEW_OBJECTS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest groups first when the tests run side by side.

    A test whose name holds an address has another one in every process, so none could be shared
    out: raises `pytest.UsageError`.
    """
    if unsteady := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        raise pytest.UsageError(f"tests named after an address: {', '.join(unsteady)}")
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    marks: dict[str, set[str]] = defaultdict(set)
    for item in items:
        marks[side_by_side.group_of(item.nodeid)] |= {mark.name for mark in item.iter_markers()}
    ranks = side_by_side.ranks(marks)
    items.sort(key=lambda item: ranks[side_by_side.group_of(item.nodeid)])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: "Producer") -> "LoadScopeScheduling":
    """Hand whole groups to the processes, in the order in which they were collected."""
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return side_by_side.group_of(nodeid)

    config.option.loadscopereorder = False
    return ByGroup(config, log)


@pytest.fixture(scope="session")
def elasticsearch() -> "Iterator[Elasticsearch]":
    """One server for all: a start takes as much as everything that they ask of it.

    Those who use it run one after another in one process. Each writes into an index of its own, and
    who kills it starts it again.
    """
    from tests.lib.elasticsearch_server import Elasticsearch

    with Elasticsearch() as running:
        yield running


@pytest.fixture(scope="session")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One node of Apache Kafka for all who only ask what it answers, in one process as above."""
    from tests.lib.apache_kafka import kafka_libs, running_node

    with running_node(kafka_libs(), tmp_path_factory.mktemp("apache-kafka")) as bootstrap:
        yield bootstrap
