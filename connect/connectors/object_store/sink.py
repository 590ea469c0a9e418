"""ObjectStoreSink: the connector, which passes its settings to its tasks."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from connect.connectors.object_store.files import FileSettings
from connect.connectors.object_store.settings import CONFIG, short
from connect.connectors.original import OriginalSinkConnector
from connect.local_files import allowed_path
from connect.outcomes import Outcomes, refused, warned
from millstream.connect import ConfigException, SinkTask
from millstream.connect.connectors import Settings

_NO_ENCRYPTION: Final = "all objects have the encryption that the bucket is configured with."
_NO_TAGS: Final = "tags are not supported."
_CREDENTIALS: Final = "the access key and secret come from settings or the environment."
_NO_PROXY: Final = "a proxy is not supported."
_VALUES_ONLY: Final = "files contain only values."
_ONE_OBJECT: Final = "a file is collected in memory and written at once."
_CHAIN: Final = "com.amazonaws.auth.defaultawscredentialsproviderchain"

OUTCOMES: Final = Outcomes(
    "Confluent's S3 sink",
    CONFIG,
    refused("storage.class", "only S3 and compatible stores are supported.", "",
            "io.confluent.connect.s3.storage.s3storage", "s3storage"),
    refused("directory.delim", "the separator of folders is /.", "", "/"),
    refused("file.delim", "the separator in the names of files is +.", "", "+"),
    refused("schema.compatibility", "a file ends when the schema changes.", "", "none"),
    refused("allow.optional.map.keys", "a map with optional keys becomes an array of pairs.",
            "", "false"),
    refused("store.kafka.keys", _VALUES_ONLY, "", "false"),
    refused("store.kafka.headers", _VALUES_ONLY, "", "false"),
    refused("tombstone.encoded.partition", _VALUES_ONLY, "", "tombstone"),
    refused("s3.ssea.name", _NO_ENCRYPTION, ""),
    refused("s3.sse.customer.key", _NO_ENCRYPTION, ""),
    refused("s3.sse.kms.key.id", _NO_ENCRYPTION, ""),
    refused("s3.acl.canned", "objects have the access rules of the bucket.", ""),
    refused("s3.object.tagging", _NO_TAGS, "", "false"),
    refused("s3.object.tagging.key.value.pairs", _NO_TAGS, ""),
    refused("s3.credentials.provider.class", _CREDENTIALS, "", _CHAIN,
            "com.amazonaws.auth.environmentvariablecredentialsprovider"),
    refused("s3.credentials.provider.*", _CREDENTIALS, ""),
    refused("s3.proxy.url", _NO_PROXY, ""),
    refused("s3.proxy.user", _NO_PROXY, ""),
    refused("s3.proxy.password", _NO_PROXY, "", "[hidden]"),
    refused("s3.schema.partition.affix.type", "folders are not named by the schema.", "", "none"),
    refused("enable.conditional.writes", "a file is replaced when it is written again.",
            "", "false"),
    refused("schema.backup.*", "envelopes with schemas are not supported.", "", "false"),
    warned("the partitioner names the folders.", "schema.generator.class"),
    warned(_VALUES_ONLY, "keys.format.class", "headers.format.class",
           "s3.object.behavior.on.tagging.error"),
    warned(_ONE_OBJECT, "s3.part.size", "s3.part.retries", "s3.retry.backoff.ms", "s3.wan.mode",
           "s3.send.digest", "s3.http.send.expect.continue", "s3.elastic.buffer.enable",
           "s3.elastic.buffer.init.capacity", "s3.path.style.access.enabled",
           "max.files.scan.limit"),
    warned("the worker retries after its own interval.", "retry.backoff.ms", "shutdown.timeout.ms",
           "max.write.duration.ms"),
    warned("a schema is kept as long as its file is open.", "schema.cache.size",
           "schemas.cache.config"),
    warned("the records decide where files end; the files of all folders end together.",
           "rotate.file.on.partition.change", "partitioner.max.open.files"),
)  # fmt: skip


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
