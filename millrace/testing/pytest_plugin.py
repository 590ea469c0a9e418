"""The pytest fixture `kafka_broker`: a fresh broker a test, its log shown when the test fails.

Installing the distribution is enough; nothing need be imported.
"""

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from millrace.testing.local_broker import LOG_TAIL_CHARACTERS, LocalBroker


@pytest.fixture
def kafka_broker() -> Iterator[LocalBroker]:
    """A real broker on a free port, in a temporary folder, stopped after the test."""
    with LocalBroker() as broker:
        yield broker


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the log of every `LocalBroker` among a failed test's fixtures to its report."""
    report = yield
    if report.failed:
        for name, value in getattr(item, "funcargs", {}).items():
            if isinstance(value, LocalBroker):
                report.sections.append((f"log of {name}", value.log()[-LOG_TAIL_CHARACTERS:]))
    return report
