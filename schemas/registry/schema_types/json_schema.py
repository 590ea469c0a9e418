"""JSON Schema: checked against its own draft by the `jsonschema` package."""

import json

from jsonschema.exceptions import SchemaError
from jsonschema.validators import Draft7Validator, validator_for

from schemas.registry.records import compact_json
from schemas.registry.refusals import invalid_schema
from schemas.registry.schema_types import ParsedSchema, cannot_tell, unknown_format


class JsonSchema(ParsedSchema):
    """One schema; the draft is the one it names, else draft 7."""

    def __init__(self, text: str) -> None:
        try:
            self._json = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise invalid_schema(f"Invalid schema of type JSON, details: {error}") from error
        if not isinstance(self._json, dict | bool):
            raise invalid_schema("Invalid schema of type JSON, details: not an object")
        try:
            validator_for(self._json, default=Draft7Validator).check_schema(self._json)
        except (SchemaError, RecursionError) as error:
            reason = getattr(error, "message", error)
            raise invalid_schema(f"Invalid schema of type JSON, details: {reason}") from error

    @property
    def canonical(self) -> str:
        return compact_json(self._json)

    def normalized(self) -> str:
        return json.dumps(self._json, separators=(",", ":"), ensure_ascii=False, sort_keys=True)

    def formatted(self, how: str) -> str:
        raise unknown_format(how, "JSON")

    def cannot_read(self, written: ParsedSchema) -> list[str]:
        raise cannot_tell("JSON")
