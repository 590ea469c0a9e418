"""Requests to brokers that librdkafka's admin client does not have, over connections of aiokafka.

DescribeConfigs and IncrementalAlterConfigs (KIP-226, KIP-339): librdkafka does not request settings
of all brokers, and its Python client keeps only one synonym of each name.
ListPartitionReassignments (KIP-455).
"""

from typing import Final

from aiokafka.protocol.api import Response
from aiokafka.protocol.types import (
    Array,
    Boolean,
    CompactArray,
    CompactString,
    Int8,
    Int16,
    Int32,
    Schema,
    String,
    TaggedFields,
)

from common.kafka.transactions.messages import Message

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
SET: Final = 0
DELETE: Final = 1
_TAGS: Final = ("tags", TaggedFields)


def _text() -> String:
    return String("utf-8")


class DescribeConfigsResponse1(Response):  # type: ignore[misc, unused-ignore]
    API_KEY = 32
    API_VERSION = 1
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "resources",
            Array(
                ("error_code", Int16),
                ("error_message", _text()),
                ("resource_type", Int8),
                ("resource_name", _text()),
                (
                    "configs",
                    Array(
                        ("name", _text()),
                        ("value", _text()),
                        ("is_read_only", Boolean),
                        ("source", Int8),
                        ("is_sensitive", Boolean),
                        (
                            "synonyms",
                            Array(("name", _text()), ("value", _text()), ("source", Int8)),
                        ),
                    ),
                ),
            ),
        ),
    )


class DescribeConfigs1(Message):
    API_KEY = 32
    API_VERSION = 1
    FLEXIBLE_VERSION = False
    RESPONSE_TYPE = DescribeConfigsResponse1
    SCHEMA = Schema(
        (
            "resources",
            Array(
                ("resource_type", Int8),
                ("resource_name", _text()),
                ("names", Array(_text())),
            ),
        ),
        ("include_synonyms", Boolean),
    )


class IncrementalAlterConfigsResponse0(Response):  # type: ignore[misc, unused-ignore]
    API_KEY = 44
    API_VERSION = 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "responses",
            Array(
                ("error_code", Int16),
                ("error_message", _text()),
                ("resource_type", Int8),
                ("resource_name", _text()),
            ),
        ),
    )


class IncrementalAlterConfigs0(Message):
    API_KEY = 44
    API_VERSION = 0
    FLEXIBLE_VERSION = False
    RESPONSE_TYPE = IncrementalAlterConfigsResponse0
    SCHEMA = Schema(
        (
            "resources",
            Array(
                ("resource_type", Int8),
                ("resource_name", _text()),
                ("configs", Array(("name", _text()), ("operation", Int8), ("value", _text()))),
            ),
        ),
        ("validate_only", Boolean),
    )


class ListPartitionReassignmentsResponse0(Response):  # type: ignore[misc, unused-ignore]
    API_KEY = 46
    API_VERSION = 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("error_message", CompactString("utf-8")),
        (
            "topics",
            CompactArray(
                ("topic", CompactString("utf-8")),
                (
                    "partitions",
                    CompactArray(
                        ("partition", Int32),
                        ("replicas", CompactArray(Int32)),
                        ("adding_replicas", CompactArray(Int32)),
                        ("removing_replicas", CompactArray(Int32)),
                        _TAGS,
                    ),
                ),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class ListPartitionReassignments0(Message):
    API_KEY = 46
    API_VERSION = 0
    RESPONSE_TYPE = ListPartitionReassignmentsResponse0
    SCHEMA = Schema(
        ("timeout_ms", Int32),
        (
            "topics",
            CompactArray(
                ("topic", CompactString("utf-8")), ("partitions", CompactArray(Int32)), _TAGS
            ),
        ),
        _TAGS,
    )
