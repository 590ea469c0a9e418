"""SimpleHeaderConverter: headers as strings, whose types are inferred when they are read."""

import logging
from collections.abc import Mapping
from typing import Any

from connect.converters.settings import KAFKA_VERSION
from connect.converters.value_parser import parse_string
from connect.converters.value_text import value_text
from millstream.connect.data.schema import NULL, Schema, SchemaAndValue
from millstream.connect.errors import DataException
from millstream.connect.plugins import HeaderConverter

logger = logging.getLogger(__name__)


class SimpleHeaderConverter(HeaderConverter):
    """The default converter of headers."""

    kafka_class = "org.apache.kafka.connect.storage.SimpleHeaderConverter"

    @classmethod
    def version(cls) -> str:
        return KAFKA_VERSION

    def configure(self, configs: Mapping[str, Any]) -> None:
        pass

    def from_connect_header(
        self, topic: str, header_key: str, schema: Schema | None, value: Any
    ) -> bytes | None:
        # A lone surrogate becomes a question mark, as in Java.
        return None if value is None else value_text(schema, value).encode("utf-8", "replace")

    def to_connect_header(self, topic: str, header_key: str, value: bytes | None) -> SchemaAndValue:
        if value is None:
            return NULL
        text = value.decode("utf-8", "replace")
        try:
            return parse_string(text)
        except (DataException, RecursionError) as error:
            logger.warning(
                "header kept as bytes topic=%s header=%s reason=%s", topic, header_key, error
            )
            return SchemaAndValue(Schema.bytes(), value)
