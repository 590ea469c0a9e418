"""One stack for all tests of the REST proxy; each test has topics and groups of its own."""

from collections.abc import Iterator
from itertools import count

import pytest

from millstream.testing import LocalStack
from tests.lib.rest_calls import RestCalls

_NUMBERS = count()


@pytest.fixture(scope="session")
def stack() -> Iterator[LocalStack]:
    with LocalStack(parts=["registry", "rest-proxy"], num_partitions=2) as running:
        yield running


@pytest.fixture
def rest(stack: LocalStack) -> RestCalls:
    return RestCalls(stack.rest_proxy_url)


@pytest.fixture
def topic() -> str:
    """A name that no other test has."""
    return f"topic-{next(_NUMBERS)}"


@pytest.fixture
def group() -> str:
    return f"group-{next(_NUMBERS)}"
