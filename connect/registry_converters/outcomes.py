"""What becomes of each setting of Confluent's converters: Avro, JSON Schema and Protobuf."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from connect.outcomes import Outcomes, Setting, refused, same, warned
from millrace.connect import ConfigDef, ConfigValue

log = logging.getLogger(__name__)

_AVRO_TEST: Final = "test_avro_converter.py::"
_CLIENT: Final = (
    _AVRO_TEST + "test_confluents_clients_read_what_it_writes_and_it_reads_what_they_write"
)
_CHOSEN: Final = (
    _AVRO_TEST + "test_without_registering_it_writes_with_the_schema_that_a_person_registered"
)
_NULLS: Final = _AVRO_TEST + "test_a_null_with_a_default_is_written_as_the_settings_say"
_OF_REGISTRY: Final = "test_registry_settings.py::"
_NO_TOKENS: Final = "the registry is asked with a name and a password, or without."
_NO_RULES: Final = "there are no rules in a schema here."


def _common() -> list[Setting]:
    return [
        *same(_CLIENT, "schema.registry.url"),
        *same(
            _OF_REGISTRY + "test_a_registry_is_asked_as_the_settings_say",
            *("basic.auth.user.info", "schema.registry.basic.auth.user.info"),
        ),
        *refused(
            "basic.auth.credentials.source",
            "name and password are taken from basic.auth.user.info or the URL.",
            *("", "user_info", "url"),
        ),
        *same(_CHOSEN, "auto.register.schemas", "use.latest.version", "use.schema.id"),
        *same(_CHOSEN, "latest.compatibility.strict", "id.compatibility.strict"),
        *same(_OF_REGISTRY + "test_a_newest_schema_is_asked_for_again", "latest.cache.ttl.sec"),
        *same(_OF_REGISTRY + "test_subjects_are_named_as_the_settings_say",
              "key.subject.name.strategy", "value.subject.name.strategy"),
        *same(_OF_REGISTRY + "test_a_registry_is_asked_as_the_settings_say", "normalize.schemas"),
        *same(_NULLS, "ignore.default.for.nullables"),
        *refused("generalized.sum.type.support", "unions have one field for each branch.",
                 "", "false"),
        *refused("use.schema.guid", "schemas are chosen by use.schema.id.", ""),
        *refused("use.latest.with.metadata", "schemas are chosen by use.latest.version.", ""),
        *refused("propagate.schema.tags", "there are no tags here.", "", "false"),
        *refused("schema.format", "schemas are read in the form the converter needs.", ""),
        *refused("schema.reflection", "there are no Java classes.", "", "false"),
        *refused("rule.executors*", _NO_RULES, ""),
        *refused("rule.actions*", _NO_RULES, ""),
        *refused("rule.service.loader.enable", _NO_RULES, "", "false", "true"),
        *refused("validation.rules.*", _NO_RULES, "", "none"),
        *refused(
            "context.name.strategy",
            "subjects are of the registry's own context.",
            *("", "io.confluent.kafka.serializers.context.nullcontextnamestrategy"),
        ),
        *refused("*.schema.id.serializer", "ids stand before the value.", "",
                 "io.confluent.kafka.serializers.schema.id.prefixschemaidserializer"),
        *refused("*.schema.id.deserializer", "ids are read where they stand before the value.", "",
                 "io.confluent.kafka.serializers.schema.id.prefixschemaiddeserializer",
                 "io.confluent.kafka.serializers.schema.id.dualschemaiddeserializer"),
        *refused("bearer.auth.*", _NO_TOKENS, ""),
        *refused("schema.registry.ssl.*", "a registry behind TLS needs a certificate that the "
                 "machine trusts.", ""),
        *refused("proxy.host", "the registry is asked without a proxy.", ""),
        *refused("proxy.port", "the registry is asked without a proxy.", "", "-1"),
        *refused("request.header.*", "requests have no headers of their own.", ""),
        *refused("schema.backup.*", "there are no envelopes with schemas.", "", "false"),
        *warned("1,000 schemas are kept, and more are asked for again.",
                "schemas.cache.config", "max.schemas.per.subject", "latest.cache.size"),
        *warned("it only says when a request is given up or tried again, and every failure is "
                "tried again by the worker.",
                "http.connect.timeout.ms", "http.read.timeout.ms", "max.retries", "retries.wait.ms",
                "retries.max.wait.ms", "use.apache.http.client"),
        *warned("what is missing is asked for each time.",
                "missing.cache.size", "missing.id.cache.ttl.sec", "missing.version.cache.ttl.sec",
                "missing.schema.cache.ttl.sec"),
        *warned("the registries are asked in their order.",
                "schema.registry.url.randomize", "url.randomize"),
        *warned("it tells rules and metrics where they run, and there are none.",
                "execution.environment", "rule.metrics.enable"),
    ]  # fmt: skip


AVRO: Final = Outcomes(
    "Confluent's AvroConverter",
    _common(),
    same(_AVRO_TEST + "test_enums_and_branches_are_enhanced_only_when_it_is_said",
         "enhanced.avro.schema.support"),
    same(_AVRO_TEST + "test_without_meta_data_schemas_say_only_what_avro_has", "connect.meta.data"),
    refused("scrub.invalid.names", "names that Avro has not are refused.", "", "false"),
    refused("allow.optional.map.keys", "a map with optional keys is an array of pairs.",
            "", "false"),
    refused("discard.type.doc.default", "a type's documentation and default are kept.",
            "", "false"),
    refused("flatten.singleton.unions", "a union of one branch is that branch.", "", "true"),
    refused("specific.avro.reader", "there are no Java classes.", "", "false"),
    refused("specific.avro.key.type", "there are no Java classes.", ""),
    refused("specific.avro.value.type", "there are no Java classes.", ""),
    refused("avro.reflection.allow.null", "there are no Java classes.", "", "false"),
    refused("avro.use.logical.type.converters", "there are no Java classes.", "", "false"),
    refused("avro.fail.on.trailing.data", "bytes behind a value are not looked at.", "", "false"),
    warned("schemas have no properties of Java's.", "avro.remove.java.properties"),
)  # fmt: skip
JSON_SCHEMA: Final = Outcomes(
    "Confluent's JsonSchemaConverter",
    _common(),
    same("test_json_schema_converter.py::test_decimals_are_numbers_when_told", "decimal.format"),
    refused("object.additional.properties", "objects may have more properties.", "", "true"),
    refused("use.optional.for.nonrequired", "what a schema of others does not require is optional.",
            "", "true", "false"),
    refused("ignore.modern.dialects", "schemas are read by what they say.", "", "false"),
    refused("flatten.singleton.unions", "a union of one branch is that branch.", "", "true"),
    refused("preserve.additional.properties", "properties that a schema does not name are left "
            "out.", "", "false"),
    refused("json.fail.invalid.schema", "values are written by their schema.", "", "false", "true"),
    refused("json.fail.unknown.properties", "properties that a schema does not name are left out.",
            "", "false", "true"),
    refused("json.validate.before.domain.rules", _NO_RULES, "", "false"),
    refused("json.write.dates.iso8601", "dates are numbers.", "", "false"),
    refused("json.oneof.for.nullables", "what may be null is oneOf with null.", "", "true"),
    refused("json.envelope.detection", "there are no envelopes.", "", "false"),
    refused("json.key.type", "there are no Java classes.", ""),
    refused("json.value.type", "there are no Java classes.", ""),
    refused("type.property", "there are no Java classes.", "", "javatype"),
    refused("json.type.allowed.packages", "there are no Java classes.", ""),
    refused("json.schema.scan.packages", "there are no Java classes.", ""),
    refused("json.default.property.inclusion", "properties that are null are written.", ""),
    warned("it names the dialect for Java classes, of which there are none.",
           "json.schema.spec.version"),
    warned("it only puts blanks between the values.", "json.indent.output"),
)  # fmt: skip
PROTOBUF: Final = Outcomes(
    "Confluent's ProtobufConverter",
    _common(),
    same("test_protobuf_converter.py::test_without_optional_fields_a_null_is_zero",
         "optional.for.nullables", sentence="Here it is true unless it is said otherwise: without "
         "it a null is lost, which is Confluent's default."),
    refused("enhanced.protobuf.schema.support", "messages have the names of their structs.",
            "", "false"),
    refused("scrub.invalid.names", "names that Protobuf has not are refused.", "", "false"),
    refused("int.for.enums", "enums are texts.", "", "false"),
    refused("optional.for.proto2", "a field of proto2 that may be missing is optional.",
            "", "true"),
    refused("wrapper.for.nullables", "what may be null is an optional field.", "", "false"),
    refused("wrapper.for.raw.primitives", "only structs are keys and values.", "", "true"),
    refused("generate.struct.for.nulls", "a message that is not there is null.", "", "false"),
    refused("generate.index.for.unions", "a oneof is fields of which one is there.",
            "", "true", "false"),
    refused("flatten.unions", "a oneof is fields of which one is there.", "", "true", "false"),
    refused("connect.meta.data", "what only Connect knows is told.", "", "true"),
    refused("reference.lookup.only", "schemas refer to no others.", "", "false"),
    refused("reference.subject.name.strategy", "schemas refer to no others.", "",
            "io.confluent.kafka.serializers.subject.defaultreferencesubjectnamestrategy"),
    refused("specific.protobuf.key.type", "there are no Java classes.", ""),
    refused("specific.protobuf.value.type", "there are no Java classes.", ""),
    refused("derive.type", "there are no Java classes.", "", "false"),
    warned("well-known types are never registered.", "skip.known.types"),
)  # fmt: skip


def validated(
    table: Outcomes, config: ConfigDef, settings: Mapping[str, str]
) -> dict[str, ConfigValue]:
    """Check a converter's settings, and add what is refused of the original's."""
    return table.refuse(settings, config.validate_all(settings))


def require(table: Outcomes, settings: Mapping[str, Any]) -> None:
    """Raises ConfigException for what is refused, and warns of what has no effect."""
    table.require(settings)
    for warning in table.warnings(settings):
        log.warning("%s: %s", table.original, warning)
