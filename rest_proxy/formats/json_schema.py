"""JSON Schema: data is checked by its schema and written as JSON."""

from collections.abc import Mapping
from typing import Any, Final

from common.registry.json_schema import JsonSchema, JsonSchemaError, TooManyStepsError
from rest_proxy.formats import ExpensiveError, Format, FormatError
from rest_proxy.formats.plain import decode_plain, encode_plain

_QUICK_STEPS: Final = 1_000
"""They take about two milliseconds."""


class JsonSchemaCodec:
    """Owns one schema, and the texts of those that it refers to, by name."""

    def __init__(self, text: str, references: Mapping[str, str] | None = None) -> None:
        try:
            self._schema = JsonSchema(text, references)
        except JsonSchemaError as error:
            raise FormatError(str(error)) from None

    @property
    def record_name(self) -> str | None:
        return self._schema.title

    @property
    def schema(self) -> Any:
        return self._schema.schema

    def encode(self, data: Any) -> bytes:
        try:
            return self._encode(data, _QUICK_STEPS)
        except TooManyStepsError:
            raise ExpensiveError from None

    def encode_slowly(self, data: Any) -> bytes:
        return self._encode(data, None)

    def _encode(self, data: Any, steps: int | None) -> bytes:
        try:
            why = self._schema.why_wrong(data, steps)
        except JsonSchemaError as error:
            raise FormatError(str(error)) from None
        if why is not None:
            raise FormatError(why)
        # A null that has a schema is the JSON text null, not a record without a value.
        return encode_plain(Format.JSON, data) or b"null"

    def decode(self, body: bytes) -> Any:
        return decode_plain(Format.JSON, body)
