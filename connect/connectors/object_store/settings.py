"""ObjectStoreSink's settings."""

from typing import Any, Final

from millstream.connect import ConfigDef, Importance
from millstream.connect.config.types import Type
from millstream.connect.config.validators import LambdaValidator, NonEmptyString, Range, ValidString

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
    """Return a class's name without its Java package."""
    return name.rpartition(".")[2]


def extractor(name: str) -> str:
    """Return the short name of a `timestamp.extractor`, which may be a Java class."""
    return name.rpartition("$")[2].rpartition(".")[2].removesuffix(_SHORTEST_EXTRACTOR)


def _valid_extractor(name: str, value: Any) -> None:
    ValidString(*EXTRACTORS)(name, extractor(str(value)))


def _one_of(*names: str) -> LambdaValidator:
    valid = ValidString(*names)
    return LambdaValidator(lambda name, value: valid(name, short(str(value))), str(valid))


CONFIG: Final = (
    ConfigDef()
    .define("store.url", Type.STRING, Importance.HIGH,
            "As file:///folder, or the URL of a server with S3's API; empty means Amazon S3.",
            default="", group="Storage")
    .define("s3.bucket.name", Type.STRING, Importance.HIGH, "The bucket.", default="",
            group="Storage")
    .define("s3.region", Type.STRING, Importance.MEDIUM, "Its region.", default="us-west-2",
            group="Storage")
    .define("aws.access.key.id", Type.PASSWORD, Importance.HIGH,
            "The access key; empty means that of the environment.", default=None,
            group="Storage")
    .define("aws.secret.access.key", Type.PASSWORD, Importance.HIGH, "The key's secret.",
            default=None, group="Storage")
    .define("topics.dir", Type.STRING, Importance.HIGH, "The top folder.", default="topics",
            validator=NonEmptyString(), group="Storage")
    .define("format.class", Type.STRING, Importance.HIGH,
            "The format of files: ParquetFormat, AvroFormat (both need schemas), JsonFormat, or "
            "ByteArrayFormat.",
            default=FORMATS[0], validator=_one_of(*FORMATS), group="Files")
    .define("parquet.codec", Type.STRING, Importance.LOW, "The compression of Parquet files.",
            default="snappy", validator=ValidString("none", "snappy", "gzip", "brotli", "zstd"),
            group="Files")
    .define("avro.codec", Type.STRING, Importance.LOW, "The compression of Avro files.",
            default="null", validator=ValidString("null", "deflate", "bzip2"), group="Files")
    .define("enhanced.avro.schema.support", Type.BOOLEAN, Importance.LOW,
            "Whether enums stay enums in Avro files.", default=False, group="Files")
    .define("connect.meta.data", Type.BOOLEAN, Importance.LOW,
            "Whether schemas in Avro files carry Connect's own details.", default=True,
            group="Files")
    .define("s3.compression.type", Type.STRING, Importance.LOW,
            "The compression of files with JSON and with bytes: none or gzip.", default="none",
            validator=ValidString("none", "gzip"), group="Files")
    .define("s3.compression.level", Type.INT, Importance.LOW,
            "The compression level of gzip, from 0 to 9; -1: its default.", default=-1,
            validator=Range(-1, 9), group="Files")
    .define("json.decimal.format", Type.STRING, Importance.LOW,
            "The format of decimals in JSON files: BASE64 or NUMERIC.", default="BASE64",
            validator=ValidString("BASE64", "NUMERIC"), group="Files")
    .define("format.bytearray.extension", Type.STRING, Importance.LOW,
            "The extension of the files of ByteArrayFormat.", default=".bin", group="Files")
    .define("format.bytearray.separator", Type.STRING, Importance.LOW,
            "The separator after each value of ByteArrayFormat; empty: the end of a line.",
            default=None, group="Files")
    .define("flush.size", Type.INT, Importance.HIGH, "The largest number of records in a file.",
            validator=Range(1), group="Files")
    .define("rotate.interval.ms", Type.LONG, Importance.HIGH,
            "The longest time between a file's records, by their timestamps; -1: no limit.",
            default=-1, validator=Range(-1), group="Files")
    .define("rotate.schedule.interval.ms", Type.LONG, Importance.MEDIUM,
            "The interval at which files end, counted from midnight in `timezone`; -1: only when "
            "they are full. A task that starts again first removes files that were not committed.",
            default=-1, validator=Range(-1), group="Files")
    .define("filename.offset.zero.pad.width", Type.INT, Importance.LOW,
            "The number of digits of an offset in a file's name.", default=10, validator=Range(0),
            group="Files")
    .define("behavior.on.null.values", Type.STRING, Importance.LOW,
            "The effect of records without a value: ignore or fail.", default="fail",
            validator=ValidString("ignore", "fail"), group="Files")
    .define("report.null.values.to.dlq", Type.BOOLEAN, Importance.LOW,
            "Whether ignored records without a value go to the dead letter queue.",
            default=True, group="Files")
    .define("partitioner.class", Type.STRING, Importance.HIGH,
            "The names of folders: by Kafka's partition, by fields, or by time.",
            default=PARTITIONERS[0], validator=_one_of(*PARTITIONERS), group="Folders")
    .define("partition.field.name", Type.LIST, Importance.MEDIUM,
            "The fields that name folders, as a.b for nested ones.", default=[], group="Folders")
    .define("partition.duration.ms", Type.LONG, Importance.MEDIUM,
            "The period of time of one folder.", default=-1, validator=Range(-1),
            group="Folders")
    .define("path.format", Type.STRING, Importance.MEDIUM,
            "The names of TimeBasedPartitioner's folders: a pattern of Joda-Time.",
            default="", group="Folders")
    .define("locale", Type.STRING, Importance.MEDIUM,
            "The language of months and days in folders; only English is supported.", default="",
            group="Folders")
    .define("timezone", Type.STRING, Importance.MEDIUM,
            "The time zone of folders, as Europe/Paris or +02:00; empty: UTC.",
            default="", group="Folders")
    .define("timestamp.extractor", Type.STRING, Importance.MEDIUM,
            "The time that counts: Wallclock (when it is put), Record (its timestamp) or "
            "RecordField. With Wallclock, what is read again may fall into another folder.",
            default=EXTRACTORS[0], validator=LambdaValidator(_valid_extractor, str(EXTRACTORS)),
            group="Folders")
    .define("timestamp.field", Type.STRING, Importance.MEDIUM,
            "The field for RecordField: a timestamp, ms since 1970, or an ISO 8601 string.",
            default="timestamp", group="Folders")
)  # fmt: skip
