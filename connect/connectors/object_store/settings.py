"""ObjectStoreSink's settings."""

from typing import Final

from millrace.connect import ConfigDef, Importance
from millrace.connect.config.types import Type
from millrace.connect.config.validators import LambdaValidator, NonEmptyString, Range, ValidString

VERSION: Final = "1.0"
FORMATS: Final = ("ParquetFormat", "AvroFormat", "JsonFormat")
PARTITIONERS: Final = (
    "DefaultPartitioner",
    "FieldPartitioner",
    "TimeBasedPartitioner",
    "DailyPartitioner",
    "HourlyPartitioner",
)
EXTRACTORS: Final = ("Record", "RecordField")


def short(name: str) -> str:
    """Return a class's name without Java's package."""
    return name.rpartition(".")[2]


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
            "What is in a file: ParquetFormat, AvroFormat (both need schemas), JsonFormat.",
            default=FORMATS[0], validator=_one_of(*FORMATS), group="Files")
    .define("parquet.codec", Type.STRING, Importance.LOW, "How Parquet is compressed.",
            default="snappy", validator=ValidString("none", "snappy", "gzip", "zstd"),
            group="Files")
    .define("flush.size", Type.INT, Importance.HIGH, "How many records a file holds at most.",
            validator=Range(1), group="Files")
    .define("rotate.interval.ms", Type.LONG, Importance.HIGH,
            "How long a time a file's records cover at most, by their own timestamps; -1: any.",
            default=-1, validator=Range(-1), group="Files")
    .define("rotate.schedule.interval.ms", Type.LONG, Importance.MEDIUM,
            "How long a record waits to be written, by the clock; -1: until its file is full. A "
            "task that starts again first removes files that were not committed.",
            default=-1, validator=Range(-1), group="Files")
    .define("filename.offset.zero.pad.width", Type.INT, Importance.LOW,
            "How many digits an offset has in a file's name.", default=10, validator=Range(0),
            group="Files")
    .define("behavior.on.null.values", Type.STRING, Importance.LOW,
            "What to do with records without a value: ignore or fail.", default="fail",
            validator=ValidString("ignore", "fail"), group="Files")
    .define("partitioner.class", Type.STRING, Importance.HIGH,
            "How folders are named: by Kafka's partition, by fields, or by time.",
            default=PARTITIONERS[0], validator=_one_of(*PARTITIONERS), group="Folders")
    .define("partition.field.name", Type.LIST, Importance.MEDIUM,
            "The fields that name folders, as a.b for nested ones.", default=[], group="Folders")
    .define("partition.duration.ms", Type.LONG, Importance.MEDIUM,
            "How long a time one folder covers.", default=-1, validator=Range(-1),
            group="Folders")
    .define("path.format", Type.STRING, Importance.MEDIUM,
            "How TimeBasedPartitioner names folders: a pattern of java.text.SimpleDateFormat, UTC.",
            default="", group="Folders")
    .define("timestamp.extractor", Type.STRING, Importance.MEDIUM,
            "Which time counts: Record (its timestamp) or RecordField.", default=EXTRACTORS[0],
            validator=_one_of(*EXTRACTORS), group="Folders")
    .define("timestamp.field", Type.STRING, Importance.MEDIUM,
            "The field that RecordField takes: a timestamp, or ms since 1970.",
            default="timestamp", group="Folders")
)  # fmt: skip
