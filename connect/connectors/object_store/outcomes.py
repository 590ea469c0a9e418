"""The outcome of each setting of Confluent's S3 sink."""

from typing import Final

from connect.outcomes import Outcomes, refused, same, warned

_TEST: Final = "test_object_store.py::"
_TIMES: Final = "test_folders_of_times.py::"
_SERVER: Final = _TEST + "test_a_real_server_that_speaks_s3"
_FOLDERS: Final = _TIMES + "test_the_zone_and_the_time_that_count_are_the_users"
_FULL: Final = _TEST + "test_files_are_full_or_of_another_schema_and_offsets_behind_them"
_AGAIN: Final = _TEST + "test_what_is_read_again_falls_into_the_same_files"
_NO_ENCRYPTION: Final = "all objects have the encryption that the bucket is configured with."
_NO_TAGS: Final = "tags are not supported."
_CREDENTIALS: Final = "the access key and secret come from settings or the environment."
_NO_PROXY: Final = "a proxy is not supported."
_VALUES_ONLY: Final = "files contain only values."
_ONE_OBJECT: Final = "a file is collected in memory and written at once."
_CHAIN: Final = "com.amazonaws.auth.defaultawscredentialsproviderchain"

OUTCOMES: Final = Outcomes(
    "Confluent's S3 sink",
    same(_SERVER, "store.url", "s3.bucket.name", "s3.region", "aws.access.key.id",
         "aws.secret.access.key", "topics.dir"),
    same(_TEST + "test_json_lines_and_avro_files", "format.class"),
    same(_FULL, "flush.size", "filename.offset.zero.pad.width"),
    same(_AGAIN, "rotate.interval.ms", sentence="Without a partitioner by time the records' "
         "timestamps count; Confluent's sink ignores the setting in that case."),
    same(_TIMES + "test_files_end_by_the_clock_of_the_zone", "rotate.schedule.interval.ms"),
    same(_TEST + "test_folders_by_day_by_hour_and_by_field", "partitioner.class",
         "partition.field.name", sentence="A slash in a field is written as %2F, so it does "
         "not create another folder."),
    same(_TIMES + "test_every_hour_of_nine_years_has_the_folder_of_the_original",
         "path.format", "partition.duration.ms"),
    same(_FOLDERS, "timezone", "timestamp.extractor", "timestamp.field"),
    same(_TIMES + "test_what_has_no_folders_is_refused_when_it_is_configured", "locale",
         sentence="Months and days are English; other languages need a pattern with numbers only."),
    same(_TEST + "test_a_struct_without_fields_is_in_files_that_can_hold_it",
         "avro.codec", "s3.compression.type", "s3.compression.level"),
    same(_TEST + "test_files_say_of_schemas_what_the_settings_say",
         "enhanced.avro.schema.support", "connect.meta.data", "json.decimal.format",
         "parquet.codec"),
    same(_TEST + "test_bytes_are_written_as_they_are", "format.bytearray.extension",
         "format.bytearray.separator"),
    same(_TEST + "test_tombstones_are_ignored_or_fail_and_maps_are_no_parquet",
         "behavior.on.null.values", sentence="`write` is refused: files contain only values."),
    same(_TEST + "test_records_without_a_value_are_ignored_and_reported",
         "report.null.values.to.dlq"),
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
