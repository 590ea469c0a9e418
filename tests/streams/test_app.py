"""The settings that the Faust app must not be without."""

from pathlib import Path
from typing import Any

import pytest

from common.kafka.consumer import METADATA_MAX_AGE_MS
from streams import app, order_bursts
from streams.app import build_app
from streams.records import Origin, Outgoing, Step
from streams.settings import Settings
from streams.telemetry import Metrics
from streams.topology import UndeclaredTopicError, check_written


def test_who_leads_a_partition_is_not_believed_for_minutes(tmp_path: Path) -> None:
    built = build_app(Settings(data_dir=tmp_path), "http://127.0.0.1:1", Metrics())
    assert built.app.conf.consumer_metadata_max_age_ms == METADATA_MAX_AGE_MS


def test_an_agent_with_an_undeclared_topic_is_refused_at_the_start_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add_topologies(runtime: Any, tables: Any, settings: Settings) -> None:
        async def handle(record: Any) -> None:
            """Nothing is sent in this test."""

        runtime.add_agent("stray", "orders", tables["customers"], handle, writes=["nowhere"])

    monkeypatch.setattr(app, "add_topologies", add_topologies)
    with pytest.raises(UndeclaredTopicError, match="stray uses the topic nowhere"):
        build_app(Settings(data_dir=tmp_path), "http://127.0.0.1:1", Metrics())


def test_a_step_that_sends_to_an_undeclared_topic_is_refused_by_name() -> None:
    step = Step(None, [Outgoing("nowhere", "key", b"", origin=Origin("orders-0", 1))])
    with pytest.raises(UndeclaredTopicError, match="order-bursts sends to nowhere"):
        check_written(order_bursts.READER, step, ["order-alerts"])
