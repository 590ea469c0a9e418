"""The requests of a transaction that aiokafka does not know, in the versions that are used.

Versions of transaction protocol 2 (KIP-890): Produce 12 and TxnOffsetCommit 5 add their partition
to the transaction by themselves, EndTxn 5 answers with the epoch of the next transaction. Those of
protocol 1 are the first flexible ones. TxnOffsetCommit names the member and the generation of its
group (KIP-447), OffsetFetch 7 waits for offsets that are not settled (KIP-447), ApiVersions 3 tells
the finalised features (KIP-584).
"""

from io import BytesIO
from typing import Any

from aiokafka.protocol.api import RequestStruct, Response, ResponseHeader_v0
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactBytes,
    CompactString,
    Int16,
    Int32,
    Int64,
    Schema,
    TaggedFields,
)

Versions = dict[int, tuple[int, int]]


class Message(RequestStruct):  # type: ignore[misc, unused-ignore]
    """A request in exactly one version; aiokafka's connections ask for that with `prepare`."""

    API_KEY = -1
    API_VERSION = -1
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = Response
    SCHEMA = Schema()

    def prepare(self, versions: Versions) -> "Message":
        return self


def _text() -> CompactString:
    return CompactString("utf-8")


_TAGS = ("tags", TaggedFields)
_PRODUCER = (
    ("transactional_id", _text()),
    ("producer_id", Int64),
    ("producer_epoch", Int16),
)


def _codes_by_partition() -> CompactArray:
    return CompactArray(
        ("topic", _text()),
        ("partitions", CompactArray(("partition", Int32), ("error_code", Int16), _TAGS)),
        _TAGS,
    )


class ApiVersionsResponse3(Response):  # type: ignore[misc, unused-ignore]
    API_KEY = 18
    API_VERSION = 3
    SCHEMA = Schema(
        ("error_code", Int16),
        (
            "api_versions",
            CompactArray(("api_key", Int16), ("low", Int16), ("high", Int16), _TAGS),
        ),
        ("throttle_time_ms", Int32),
        ("tags", TaggedFields),
    )

    def finalized(self, feature: str) -> int:
        """Return the level of a feature in the cluster, 0 of an unknown one."""
        levels = CompactArray(("name", _text()), ("high", Int16), ("low", Int16), _TAGS)
        data = self.tags.get(_FINALIZED_FEATURES_TAG)
        found = levels.decode(BytesIO(data)) if data else []
        return next((int(high) for name, high, _, _ in found or [] if name == feature), 0)


_FINALIZED_FEATURES_TAG = 2


class ApiVersions3(Message):
    API_KEY = 18
    API_VERSION = 3
    RESPONSE_TYPE = ApiVersionsResponse3
    SCHEMA = Schema(("software_name", _text()), ("software_version", _text()), _TAGS)

    def parse_response_header(self, read_buffer: Any) -> ResponseHeader_v0:
        # A client sends this request before it knows which versions the broker has.
        return ResponseHeader_v0.decode(read_buffer)


class InitProducerIdResponse4(Response):  # type: ignore[misc, unused-ignore]
    API_KEY = 22
    API_VERSION = 4
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("producer_id", Int64),
        ("producer_epoch", Int16),
        _TAGS,
    )


class InitProducerId4(Message):
    API_KEY = 22
    API_VERSION = 4
    RESPONSE_TYPE = InitProducerIdResponse4
    SCHEMA = Schema(
        ("transactional_id", _text()),
        ("transaction_timeout_ms", Int32),
        ("producer_id", Int64),
        ("producer_epoch", Int16),
        _TAGS,
    )


class AddPartitionsToTxnResponse3(Response):  # type: ignore[misc, unused-ignore]
    API_KEY = 24
    API_VERSION = 3
    SCHEMA = Schema(("throttle_time_ms", Int32), ("topics", _codes_by_partition()), _TAGS)


class AddPartitionsToTxn3(Message):
    API_KEY = 24
    API_VERSION = 3
    RESPONSE_TYPE = AddPartitionsToTxnResponse3
    SCHEMA = Schema(
        *_PRODUCER,
        ("topics", CompactArray(("topic", _text()), ("partitions", CompactArray(Int32)), _TAGS)),
        _TAGS,
    )


class AddOffsetsToTxnResponse3(Response):  # type: ignore[misc, unused-ignore]
    API_KEY = 25
    API_VERSION = 3
    SCHEMA = Schema(("throttle_time_ms", Int32), ("error_code", Int16), _TAGS)


class AddOffsetsToTxn3(Message):
    API_KEY = 25
    API_VERSION = 3
    RESPONSE_TYPE = AddOffsetsToTxnResponse3
    SCHEMA = Schema(*_PRODUCER, ("group_id", _text()), _TAGS)


class ProduceResponse(Response):  # type: ignore[misc, unused-ignore]
    API_KEY = 0
    API_VERSION = 9
    SCHEMA = Schema(
        (
            "topics",
            CompactArray(
                ("topic", _text()),
                (
                    "partitions",
                    CompactArray(
                        ("partition", Int32),
                        ("error_code", Int16),
                        ("base_offset", Int64),
                        ("log_append_time_ms", Int64),
                        ("log_start_offset", Int64),
                        (
                            "record_errors",
                            CompactArray(("index", Int32), ("message", _text()), _TAGS),
                        ),
                        ("error_message", _text()),
                        _TAGS,
                    ),
                ),
                _TAGS,
            ),
        ),
        ("throttle_time_ms", Int32),
        _TAGS,
    )


class Produce9(Message):
    API_KEY = 0
    API_VERSION = 9
    RESPONSE_TYPE = ProduceResponse
    SCHEMA = Schema(
        ("transactional_id", _text()),
        ("acks", Int16),
        ("timeout_ms", Int32),
        (
            "topics",
            CompactArray(
                ("topic", _text()),
                (
                    "partitions",
                    CompactArray(("partition", Int32), ("records", CompactBytes), _TAGS),
                ),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class Produce12(Produce9):
    API_VERSION = 12


class TxnOffsetCommitResponse(Response):  # type: ignore[misc, unused-ignore]
    API_KEY = 28
    API_VERSION = 3
    SCHEMA = Schema(("throttle_time_ms", Int32), ("topics", _codes_by_partition()), _TAGS)


class TxnOffsetCommit3(Message):
    API_KEY = 28
    API_VERSION = 3
    RESPONSE_TYPE = TxnOffsetCommitResponse
    SCHEMA = Schema(
        ("transactional_id", _text()),
        ("group_id", _text()),
        ("producer_id", Int64),
        ("producer_epoch", Int16),
        ("generation_id", Int32),
        ("member_id", _text()),
        ("group_instance_id", _text()),
        (
            "topics",
            CompactArray(
                ("topic", _text()),
                (
                    "partitions",
                    CompactArray(
                        ("partition", Int32),
                        ("committed_offset", Int64),
                        ("committed_leader_epoch", Int32),
                        ("metadata", _text()),
                        _TAGS,
                    ),
                ),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class TxnOffsetCommit5(TxnOffsetCommit3):
    API_VERSION = 5


class EndTxnResponse3(Response):  # type: ignore[misc, unused-ignore]
    API_KEY = 26
    API_VERSION = 3
    SCHEMA = Schema(("throttle_time_ms", Int32), ("error_code", Int16), _TAGS)


class EndTxn3(Message):
    API_KEY = 26
    API_VERSION = 3
    RESPONSE_TYPE = EndTxnResponse3
    SCHEMA = Schema(*_PRODUCER, ("committed", Boolean), _TAGS)


class EndTxnResponse5(Response):  # type: ignore[misc, unused-ignore]
    API_KEY = 26
    API_VERSION = 5
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("producer_id", Int64),
        ("producer_epoch", Int16),
        _TAGS,
    )


class EndTxn5(EndTxn3):
    API_VERSION = 5
    RESPONSE_TYPE = EndTxnResponse5


class OffsetFetchResponse7(Response):  # type: ignore[misc, unused-ignore]
    API_KEY = 9
    API_VERSION = 7
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            CompactArray(
                ("topic", _text()),
                (
                    "partitions",
                    CompactArray(
                        ("partition", Int32),
                        ("committed_offset", Int64),
                        ("committed_leader_epoch", Int32),
                        ("metadata", _text()),
                        ("error_code", Int16),
                        _TAGS,
                    ),
                ),
                _TAGS,
            ),
        ),
        ("error_code", Int16),
        _TAGS,
    )


class OffsetFetch7(Message):
    API_KEY = 9
    API_VERSION = 7
    RESPONSE_TYPE = OffsetFetchResponse7
    SCHEMA = Schema(
        ("group_id", _text()),
        ("topics", CompactArray(("topic", _text()), ("partitions", CompactArray(Int32)), _TAGS)),
        ("require_stable", Boolean),
        _TAGS,
    )
