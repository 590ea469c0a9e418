"""ObjectStoreSink's settings."""

from typing import Any, Final

from millrace.connect import ConfigDef, Importance
from millrace.connect.config.types import Type
from millrace.connect.config.validators import LambdaValidator, NonEmptyString, Range, ValidString

VERSION: Final = "1.0"
FORMATS: Final = ("ParquetFormat", "AvroFormat", "JsonFormat", "ByteArrayFormat")
PARTITIONERS: Final = (
    "DefaultPartitioner",
    "FieldPartitioner",
    "TimeBasedPartitioner",
    "DailyPartitioner",
    "HourlyPartitioner",
)
EXTRACTORS: Final = ("Wallclock", "Record", "RecordField")
TIMED: Final = ("TimeBasedPartitioner", "DailyPartitioner", "HourlyPartitioner")
_SHORTEST_EXTRACTOR: Final = "TimestampExtractor"


def short(name: str) -> str:
    """Return a class's name without Java's package."""
    return name.rpartition(".")[2]


def extractor(name: str) -> str:
    """Return which time a `timestamp.extractor` means, from a short name or a class of Java."""
    return name.rpartition("$")[2].rpartition(".")[2].removesuffix(_SHORTEST_EXTRACTOR)


def _valid_extractor(name: str, value: Any) -> None:
    ValidString(*EXTRACTORS)(name, extractor(str(value)))


def _one_of(*names: str) -> LambdaValidator:
    valid = ValidString(*names)
    return LambdaValidator(lambda name, value: valid(name, short(str(value))), str(valid))


CONFIG: Final = (
    ConfigDef()
    .define("store.url", Type.STRING, Importance.HIGH,
            "file:///folder, or where a server that speaks S3 is; empty means Amazon's.",
            default="", group="Storage")
    .define("s3.bucket.name", Type.STRING, Importance.HIGH, "The bucket.", default="",
            group="Storage")
    .define("s3.region", Type.STRING, Importance.MEDIUM, "Its region.", default="us-west-2",
            group="Storage")
    .define("aws.access.key.id", Type.PASSWORD, Importance.HIGH,
            "Who to be there; empty means what the environment says.", default=None,
            group="Storage")
    .define("aws.secret.access.key", Type.PASSWORD, Importance.HIGH, "The secret of it.",
            default=None, group="Storage")
    .define("topics.dir", Type.STRING, Importance.HIGH, "The folder above all.", default="topics",
            validator=NonEmptyString(), group="Storage")
    .define("format.class", Type.STRING, Importance.HIGH,
            "What is in a file: ParquetFormat, AvroFormat (both need schemas), JsonFormat, or "
            "ByteArrayFormat.",
            default=FORMATS[0], validator=_one_of(*FORMATS), group="Files")
    .define("parquet.codec", Type.STRING, Importance.LOW, "How Parquet is compressed.",
            default="snappy", validator=ValidString("none", "snappy", "gzip", "brotli", "zstd"),
            group="Files")
    .define("avro.codec", Type.STRING, Importance.LOW, "How Avro files are compressed.",
            default="null", validator=ValidString("null", "deflate", "bzip2"), group="Files")
    .define("enhanced.avro.schema.support", Type.BOOLEAN, Importance.LOW,
            "Whether enums are enums in Avro files.", default=False, group="Files")
    .define("connect.meta.data", Type.BOOLEAN, Importance.LOW,
            "Whether Avro files tell what only Connect knows of schemas.", default=True,
            group="Files")
    .define("s3.compression.type", Type.STRING, Importance.LOW,
            "How files of JSON and of bytes are compressed: none or gzip.", default="none",
            validator=ValidString("none", "gzip"), group="Files")
    .define("s3.compression.level", Type.INT, Importance.LOW,
            "How hard gzip tries, from 0 to 9; -1: as it likes.", default=-1,
            validator=Range(-1, 9), group="Files")
    .define("json.decimal.format", Type.STRING, Importance.LOW,
            "How JSON files have decimals: BASE64 or NUMERIC.", default="BASE64",
            validator=ValidString("BASE64", "NUMERIC"), group="Files")
    .define("format.bytearray.extension", Type.STRING, Importance.LOW,
            "How the names of ByteArrayFormat's files end.", default=".bin", group="Files")
    .define("format.bytearray.separator", Type.STRING, Importance.LOW,
            "What stands behind each value in ByteArrayFormat's files; a line's end when empty.",
            default=None, group="Files")
    .define("flush.size", Type.INT, Importance.HIGH, "How many records a file holds at most.",
            validator=Range(1), group="Files")
    .define("rotate.interval.ms", Type.LONG, Importance.HIGH,
            "How long a time a file's records cover at most, by their own timestamps; -1: any.",
            default=-1, validator=Range(-1), group="Files")
    .define("rotate.schedule.interval.ms", Type.LONG, Importance.MEDIUM,
            "How often files end by the clock, counted from midnight in `timezone`; -1: only when "
            "they are full. A task that starts again first removes files that were not committed.",
            default=-1, validator=Range(-1), group="Files")
    .define("filename.offset.zero.pad.width", Type.INT, Importance.LOW,
            "How many digits an offset has in a file's name.", default=10, validator=Range(0),
            group="Files")
    .define("behavior.on.null.values", Type.STRING, Importance.LOW,
            "What to do with records without a value: ignore or fail.", default="fail",
            validator=ValidString("ignore", "fail"), group="Files")
    .define("report.null.values.to.dlq", Type.BOOLEAN, Importance.LOW,
            "Whether records that are ignored for want of a value go to the dead letters.",
            default=True, group="Files")
    .define("partitioner.class", Type.STRING, Importance.HIGH,
            "How folders are named: by Kafka's partition, by fields, or by time.",
            default=PARTITIONERS[0], validator=_one_of(*PARTITIONERS), group="Folders")
    .define("partition.field.name", Type.LIST, Importance.MEDIUM,
            "The fields that name folders, as a.b for nested ones.", default=[], group="Folders")
    .define("partition.duration.ms", Type.LONG, Importance.MEDIUM,
            "How long a time one folder covers.", default=-1, validator=Range(-1),
            group="Folders")
    .define("path.format", Type.STRING, Importance.MEDIUM,
            "How TimeBasedPartitioner names folders: a pattern of Joda-Time.",
            default="", group="Folders")
    .define("locale", Type.STRING, Importance.MEDIUM,
            "The language of months and days in folders: English.", default="", group="Folders")
    .define("timezone", Type.STRING, Importance.MEDIUM,
            "The zone whose clock names folders, as Europe/Paris or +02:00; UTC when empty.",
            default="", group="Folders")
    .define("timestamp.extractor", Type.STRING, Importance.MEDIUM,
            "Which time counts: Wallclock (when it is put), Record (its timestamp) or RecordField. "
            "With Wallclock, what is read again may fall into another folder.",
            default=EXTRACTORS[0], validator=LambdaValidator(_valid_extractor, str(EXTRACTORS)),
            group="Folders")
    .define("timestamp.field", Type.STRING, Importance.MEDIUM,
            "The field that RecordField takes: a timestamp, ms since 1970, or ISO text.",
            default="timestamp", group="Folders")
)  # fmt: skip
