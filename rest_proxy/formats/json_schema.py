"""JSON Schema: data is checked by its schema and written as JSON."""

import json
from collections.abc import Mapping
from typing import Any

from rest_proxy.formats import Format, FormatError
from rest_proxy.formats.plain import decode_plain, encode_plain


class JsonSchemaCodec:
    """Owns one schema. `references` are the texts of the schemas it refers to, by name.

    No other reference is resolved: a reference to a web address is refused, never fetched.
    """

    def __init__(self, text: str, references: Mapping[str, str] | None = None) -> None:
        from jsonschema.exceptions import SchemaError
        from jsonschema.validators import Draft7Validator, validator_for
        from referencing import Registry
        from referencing.jsonschema import DRAFT7

        try:
            schema = json.loads(text)
            kind = validator_for(schema, default=Draft7Validator)
            kind.check_schema(schema)
            resources = [
                (name, DRAFT7.create_resource(json.loads(each)))
                for name, each in (references or {}).items()
            ]
            self._validator = kind(schema, registry=Registry().with_resources(resources))
        except SchemaError as error:
            raise FormatError(f"no JSON Schema: {error.message[:300]}") from None
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise FormatError(f"no JSON Schema: {error}") from None
        self._title = schema.get("title") if isinstance(schema, dict) else None

    @property
    def record_name(self) -> str | None:
        return self._title if isinstance(self._title, str) else None

    def encode(self, data: Any) -> bytes:
        from jsonschema.exceptions import best_match
        from referencing.exceptions import Unresolvable

        try:
            error = best_match(self._validator.iter_errors(data))
        except Unresolvable as unresolvable:
            raise FormatError(f"the schema refers to what is not there: {unresolvable}") from None
        except RecursionError:
            raise FormatError("the value or its schema is nested too deeply") from None
        # A pattern that Python's regular expressions do not know, a divisor of zero.
        except Exception as failure:  # noqa: BLE001
            raise FormatError(f"the schema cannot be applied: {failure}") from None
        if error is not None:
            raise FormatError(f"{error.json_path}: {error.message[:300]}")
        # A null that has a schema is the JSON text null, not a record without a value.
        return encode_plain(Format.JSON, data) or b"null"

    def decode(self, body: bytes) -> Any:
        return decode_plain(Format.JSON, body)
