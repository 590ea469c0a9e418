"""A failing test shows the end of its brokers' logs, whatever has become of the brokers."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from millstream.testing import LocalBroker
from millstream.testing.pytest_plugin import pytest_runtest_makereport


def report_of(broker: LocalBroker) -> Any:
    """Have the report of a failed test made that was given this broker."""
    item = cast("pytest.Item", SimpleNamespace(funcargs={"kafka_broker": broker}))
    hook = pytest_runtest_makereport(item, cast("pytest.CallInfo[Any]", None))
    next(hook)
    made = SimpleNamespace(failed=True, sections=[])
    with pytest.raises(StopIteration) as ended:
        hook.send(cast("pytest.TestReport", made))
    return ended.value.value


def test_a_broker_that_is_closed_has_nothing_to_show_and_breaks_nothing() -> None:
    assert report_of(LocalBroker()).sections == [("log of kafka_broker", "")]
