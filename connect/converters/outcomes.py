"""The outcome of each setting of Kafka's own JsonConverter and StringConverter."""

from typing import Final

from connect.outcomes import Outcomes, same

_JSON: Final = "test_json_converter.py::"

OUTCOMES: Final = Outcomes(
    "Kafka's JsonConverter and StringConverter",
    same(_JSON + "test_a_value_travels_in_an_envelope_with_its_schema", "schemas.enable"),
    same(_JSON + "test_no_more_schemas_are_kept_than_the_settings_say", "schemas.cache.size"),
    same(_JSON + "test_a_schema_given_in_the_settings_is_that_of_every_message", "schema.content"),
    same(_JSON + "test_decimals_can_be_numbers", "decimal.format"),
    same(_JSON + "test_a_null_is_its_default_unless_told_otherwise", "replace.null.with.default"),
    same(_JSON + "test_headers_are_converted_too", "converter.type"),
    same("test_primitive_converters.py::test_texts_have_an_encoding", "converter.encoding"),
)
