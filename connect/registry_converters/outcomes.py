"""The settings of Confluent's converters that ours do not have: rows of `connect.outcomes`."""

from typing import Final

from connect.outcomes import Setting, refused, warned

_NO_TOKENS: Final = "requests to the registry have a name and a password, or no credentials."
_NO_JAVA: Final = "Java classes are not supported."
_NO_REFERENCES: Final = "references between schemas are not supported."
_ONE_BRANCH: Final = "a union of one branch is read as that branch."
_ONEOF: Final = "a oneof is read as fields of which at most one is set."
_NO_RULES: Final = "rules in schemas are not supported."

_SHARED: Final[list[Setting]] = [
    *refused(
        "basic.auth.credentials.source",
        "name and password come from basic.auth.user.info or from the URL.",
        *("", "user_info", "url"),
    ),
    *refused("generalized.sum.type.support", "unions have one field for each branch.",
             "", "false"),
    *refused("use.schema.guid", "schemas are chosen by use.schema.id.", ""),
    *refused("use.latest.with.metadata", "schemas are chosen by use.latest.version.", ""),
    *refused("propagate.schema.tags", "tags are not supported.", "", "false"),
    *refused("schema.format", "the converter requests the format that it needs.", ""),
    *refused("schema.reflection", _NO_JAVA, "", "false"),
    *refused("rule.executors*", _NO_RULES, ""),
    *refused("rule.actions*", _NO_RULES, ""),
    *refused("rule.service.loader.enable", _NO_RULES, "", "false", "true"),
    *refused("validation.rules.*", _NO_RULES, "", "none"),
    *refused(
        "context.name.strategy",
        "subjects are in the registry's default context.",
        *("", "io.confluent.kafka.serializers.context.nullcontextnamestrategy"),
    ),
    *refused("*.schema.id.serializer", "the schema's id is written before the value.", "",
             "io.confluent.kafka.serializers.schema.id.prefixschemaidserializer"),
    *refused("*.schema.id.deserializer", "the schema's id is read before the value.", "",
             "io.confluent.kafka.serializers.schema.id.prefixschemaiddeserializer",
             "io.confluent.kafka.serializers.schema.id.dualschemaiddeserializer"),
    *refused("bearer.auth.*", _NO_TOKENS, ""),
    *refused("schema.registry.ssl.*", "keys and certificates are PEM files.", ""),
    *refused("proxy.host", "a proxy to the registry is not supported.", ""),
    *refused("proxy.port", "a proxy to the registry is not supported.", "", "-1"),
    *refused("request.header.*", "additional request headers are not supported.", ""),
    *refused("schema.backup.*", "envelopes with schemas are not supported.", "", "false"),
    *warned("the cache holds 1,000 schemas; others are requested again.",
            "schemas.cache.config", "max.schemas.per.subject", "latest.cache.size"),
    *warned("it only limits or repeats a request, and the worker repeats every request that "
            "fails.",
            "http.connect.timeout.ms", "http.read.timeout.ms", "max.retries", "retries.wait.ms",
            "retries.max.wait.ms", "use.apache.http.client"),
    *warned("a missing schema is requested each time.",
            "missing.cache.size", "missing.id.cache.ttl.sec", "missing.version.cache.ttl.sec",
            "missing.schema.cache.ttl.sec"),
    *warned("the URLs are tried in the order of the list.",
            "schema.registry.url.randomize", "url.randomize"),
    *warned("it is for rules and their metrics, which are not supported.",
            "execution.environment", "rule.metrics.enable"),
]  # fmt: skip


AVRO: Final = [
    *_SHARED,
    *refused("scrub.invalid.names", "names that are invalid in Avro are refused.", "", "false"),
    *refused("allow.optional.map.keys", "a map with optional keys becomes an array of pairs.",
            "", "false"),
    *refused("discard.type.doc.default", "the documentation and default of a type are kept.",
            "", "false"),
    *refused("flatten.singleton.unions", _ONE_BRANCH, "", "true"),
    *refused("specific.avro.reader", _NO_JAVA, "", "false"),
    *refused("specific.avro.key.type", _NO_JAVA, ""),
    *refused("specific.avro.value.type", _NO_JAVA, ""),
    *refused("avro.reflection.allow.null", _NO_JAVA, "", "false"),
    *refused("avro.use.logical.type.converters", _NO_JAVA, "", "false"),
    *refused("avro.fail.on.trailing.data", "bytes after a value are ignored.", "", "false"),
    *warned("schemas have no Java properties.", "avro.remove.java.properties"),
]  # fmt: skip
JSON_SCHEMA: Final = [
    *_SHARED,
    *refused("object.additional.properties", "objects may have additional properties.", "", "true"),
    *refused("use.optional.for.nonrequired", "a property outside of `required` is optional.",
            "", "true", "false"),
    *refused("ignore.modern.dialects", "all dialects are read in the same way.", "", "false"),
    *refused("flatten.singleton.unions", _ONE_BRANCH, "", "true"),
    *refused("preserve.additional.properties", "properties that the schema does not name are "
            "dropped.", "", "false"),
    *refused("json.fail.invalid.schema", "values are always written by their schema.", "", "false",
            "true"),
    *refused("json.fail.unknown.properties",
             "properties that the schema does not name are dropped.", "", "false", "true"),
    *refused("json.validate.before.domain.rules", _NO_RULES, "", "false"),
    *refused("json.write.dates.iso8601", "dates are written as numbers.", "", "false"),
    *refused("json.oneof.for.nullables", "an optional field becomes a oneOf with null.",
             "", "true"),
    *refused("json.envelope.detection", "envelopes are not supported.", "", "false"),
    *refused("json.key.type", _NO_JAVA, ""),
    *refused("json.value.type", _NO_JAVA, ""),
    *refused("type.property", _NO_JAVA, "", "javatype"),
    *refused("json.type.allowed.packages", _NO_JAVA, ""),
    *refused("json.schema.scan.packages", _NO_JAVA, ""),
    *refused("json.default.property.inclusion", "null properties are written.", ""),
    *warned("it names the dialect of schemas made from Java classes, which are not supported.",
           "json.schema.spec.version"),
    *warned("it only adds blanks between the values.", "json.indent.output"),
]  # fmt: skip
PROTOBUF: Final = [
    *_SHARED,
    *refused("enhanced.protobuf.schema.support", "a message has the name of its struct.",
            "", "false"),
    *refused("scrub.invalid.names", "names that are invalid in Protobuf are refused.", "", "false"),
    *refused("int.for.enums", "enums become strings.", "", "false"),
    *refused("optional.for.proto2", "an optional field of proto2 becomes an optional field.",
            "", "true"),
    *refused("wrapper.for.nullables", "an optional value becomes an optional field.", "", "false"),
    *refused("wrapper.for.raw.primitives", "a key or value must be a struct.", "", "true"),
    *refused("generate.struct.for.nulls", "a missing message is read as null.", "", "false"),
    *refused("generate.index.for.unions", _ONEOF, "", "true", "false"),
    *refused("flatten.unions", _ONEOF, "", "true", "false"),
    *refused("connect.meta.data", "schemas always carry Connect's own details.", "", "true"),
    *refused("reference.lookup.only", _NO_REFERENCES, "", "false"),
    *refused("reference.subject.name.strategy", _NO_REFERENCES, "",
            "io.confluent.kafka.serializers.subject.defaultreferencesubjectnamestrategy"),
    *refused("specific.protobuf.key.type", _NO_JAVA, ""),
    *refused("specific.protobuf.value.type", _NO_JAVA, ""),
    *refused("derive.type", _NO_JAVA, "", "false"),
    *warned("well-known types are never registered.", "skip.known.types"),
]  # fmt: skip
