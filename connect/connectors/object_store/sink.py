"""ObjectStoreSink: the connector, which passes its settings to its tasks."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from connect.connectors.object_store.files import FileSettings
from connect.connectors.object_store.outcomes import OUTCOMES
from connect.connectors.object_store.settings import short
from connect.connectors.original import OriginalSinkConnector
from connect.local_files import allowed_path
from millstream.connect import ConfigException, SinkTask
from millstream.connect.connectors import Settings


class ObjectStoreSinkConnector(OriginalSinkConnector):
    """Writes files into a bucket, or into a folder."""

    kafka_class = "io.confluent.connect.s3.S3SinkConnector"
    outcomes = OUTCOMES

    @staticmethod
    def mistakes(settings: Settings, parsed: Mapping[str, Any]) -> Mapping[str, str]:
        return dict([wrong] if (wrong := mistake_in(parsed)) else [])

    def task_class(self) -> type[SinkTask]:
        from connect.connectors.object_store.sink_task import ObjectStoreSinkTask

        return ObjectStoreSinkTask


def mistake_in(parsed: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the name of a setting that contradicts the others, and why; None if there is none."""
    misplaced = _mistake_in_place(parsed["store.url"], parsed["s3.bucket.name"])
    if misplaced is not None:
        return misplaced
    partitioner = short(parsed["partitioner.class"])
    if partitioner == "FieldPartitioner" and not parsed["partition.field.name"]:
        return "partition.field.name", "FieldPartitioner needs at least one field."
    if partitioner == "TimeBasedPartitioner":
        if not parsed["path.format"]:
            return "path.format", "TimeBasedPartitioner needs a pattern."
        if parsed["partition.duration.ms"] < 1:
            return "partition.duration.ms", "TimeBasedPartitioner needs a duration."
    return _mistake_in_folders(parsed)


def _mistake_in_place(store_url: str, bucket: str) -> tuple[str, str] | None:
    if store_url and not _is_address(store_url):
        return "store.url", "Give http://host:port, https://host:port or file:///folder."
    if not store_url.startswith("file:"):
        missing = "Missing: every store but file:///... needs a bucket."
        return None if bucket else ("s3.bucket.name", missing)
    try:
        allowed_path("store.url", unquote(urlsplit(store_url).path))
    except ConfigException as error:
        return "store.url", str(error)
    return None


def _is_address(text: str) -> bool:
    try:
        url = urlsplit(text)
    except ValueError:
        return False
    if url.scheme == "file":
        return url.netloc in ("", "localhost") and url.path.startswith("/")
    return url.scheme in ("http", "https") and bool(url.netloc)


def _mistake_in_folders(parsed: Mapping[str, Any]) -> tuple[str, str] | None:
    try:
        FileSettings(parsed)
    except ConfigException as error:
        text = str(error)
        settings = ("timezone", "locale", "path.format")
        return next(
            (each for each in settings if f"configuration {each}" in text), "path.format"
        ), text
    return None
