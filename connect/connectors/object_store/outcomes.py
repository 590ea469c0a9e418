"""The settings of Confluent's S3 sink that ours does not have."""

from typing import Final

from connect.connectors.object_store.settings import CONFIG
from connect.outcomes import Outcomes, refused, warned

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
