"""What the tests of the whole pipeline share: they run one after another in one process."""

from collections.abc import Iterator

import pytest

from tests.lib.elasticsearch_server import Elasticsearch


@pytest.fixture(scope="session")
def elasticsearch() -> Iterator[Elasticsearch]:
    """One server for all: a start takes as much as everything that they ask of it.

    Each writes into an index of its own. Who kills it starts it again.
    """
    with Elasticsearch() as running:
        yield running
