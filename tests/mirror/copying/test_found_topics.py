"""What the log says about the topics that a source shows."""

import logging
from collections.abc import Collection, Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from mirror.cluster import Topic
from mirror.copying.source import MirrorSourceConnector
from tests.mirror.test_policies import flow

WARNING = (
    "source shows no topic to copy flow=a->b: it has none, or its user is not authorized to "
    "DESCRIBE them"
)


class Cluster:
    """Has topics of one partition."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)

    def topic_names(self) -> list[str]:
        return self.names

    def topics(self, names: Collection[str]) -> dict[str, Topic]:
        return {name: Topic(1, name) for name in names}

    def configs(self, topics: Iterable[str]) -> dict[str, Any]:
        return {name: [] for name in topics}


def test_a_source_that_shows_nothing_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """A user without the right DESCRIBE gets a list without the topics, and no error."""
    source = Cluster("not-mirrored.internal")
    connector: Any = MirrorSourceConnector()
    connector._flow, connector._source, connector._target = flow(), source, Cluster("a.orders")
    connector._known = None
    connector.context = SimpleNamespace(request_task_reconfiguration=lambda: None)
    with caplog.at_level(logging.WARNING):
        connector._refresh()
        connector._refresh()
        assert caplog.messages == [WARNING]
        source.names.append("orders")
        connector._refresh()
        assert caplog.messages == [WARNING]
        source.names.clear()
        connector._refresh()
    assert caplog.messages == [WARNING, WARNING]
