"""How many Python calls and bytecodes a small request costs: counts, which no machine changes.

`python -m bench hot-path` prints them. A change that needs more says in its commit what for, and
raises the limit here; so nobody adds a layer to every request unseen.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.broker import hot_path

MOST: dict[str, tuple[int, int]] = {
    "produce 100 B": (39, 2_210),
    "produce 16 KB": (43, 2_290),
    "fetch 16 KB at the end": (45, 2_390),
    "fetch 16 KB by index": (54, 2_750),
    "metadata of a topic": (46, 1_500),
}


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder: Path = tmp_path_factory.mktemp("hot")
    node = hot_path._Node(str(folder))
    yield node, hot_path._frames(node)
    node.close()


@pytest.mark.parametrize("name", MOST)
def test_a_small_request_costs_no_more_steps_than_it_did(counted: Any, name: str) -> None:
    node, requests = counted
    calls, bytecodes = node.counts(requests[name])
    most_calls, most_bytecodes = MOST[name]
    assert calls <= most_calls
    assert bytecodes <= most_bytecodes
