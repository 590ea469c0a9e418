"""The settings that the Faust app must not be without."""

from pathlib import Path

from common.kafka.metadata_age import METADATA_MAX_AGE_MS
from streams.app import build_app
from streams.settings import Settings
from streams.telemetry import Metrics


def test_who_leads_a_partition_is_not_believed_for_minutes(tmp_path: Path) -> None:
    built = build_app(Settings(data_dir=tmp_path), "http://127.0.0.1:1", Metrics())
    assert built.app.conf.consumer_metadata_max_age_ms == METADATA_MAX_AGE_MS
