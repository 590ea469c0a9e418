"""Records of `__remote_log_metadata` as Kafka's tools print them: not as JSON, as Java objects."""

from collections.abc import Sequence

from broker.cli.record_schemas_remote import (
    PARTITION_DELETE_STATES,
    REMOTE_LOG_RECORDS,
    SEGMENT_STATES,
    RemoteLogSegmentIdEntry,
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataUpdateRecord,
    RemotePartitionDeleteMetadataRecord,
    TopicIdPartitionEntry,
)
from broker.cli.record_text import RecordText, open_frame
from broker.log.checkpoints import encode_uuid
from broker.records.record import Record
from common.kafka.protocol.message import Message
from common.kafka.protocol.structs import decode_struct
from common.kafka.protocol.wire import DecodeError


def remote_log_text(record: Record) -> RecordText:
    """Return the text of a record of `__remote_log_metadata`."""
    data = record.value or b""
    try:
        api_key, version, body = open_frame(data)
        schema = REMOTE_LOG_RECORDS.get(api_key)
        if schema is None:
            raise DecodeError(f"Unknown metadata id {api_key}")
        text = _object_text(decode_struct(schema, version, body))
    except (DecodeError, ValueError) as error:
        return RecordText(None, f"Error at offset {record.offset}, skipping. {error}")
    return RecordText(None, text)


def _object_text(record: Message) -> str:
    match record:
        case RemoteLogSegmentMetadataRecord():
            epochs = ", ".join(
                f"{each.leader_epoch}={each.offset}" for each in record.segment_leader_epochs
            )
            return (
                f"RemoteLogSegmentMetadata{{{_segment_text(record.remote_log_segment_id)}, "
                f"startOffset={record.start_offset}, endOffset={record.end_offset}, "
                f"brokerId={record.broker_id}, maxTimestampMs={record.max_timestamp_ms}, "
                f"eventTimestampMs={record.event_timestamp_ms}, "
                f"segmentLeaderEpochs={{{epochs}}}, "
                f"segmentSizeInBytes={record.segment_size_in_bytes}, "
                f"customMetadata={_custom_text(record.custom_metadata)}, "
                f"state={_state_text(SEGMENT_STATES, record.remote_log_segment_state)}, "
                f"txnIdxEmpty={str(record.txn_index_empty).lower()}}}"
            )
        case RemoteLogSegmentMetadataUpdateRecord():
            return (
                f"RemoteLogSegmentMetadataUpdate{{{_segment_text(record.remote_log_segment_id)}, "
                f"customMetadata={_custom_text(record.custom_metadata)}, "
                f"state={_state_text(SEGMENT_STATES, record.remote_log_segment_state)}, "
                f"eventTimestampMs={record.event_timestamp_ms}, brokerId={record.broker_id}}}"
            )
        case RemotePartitionDeleteMetadataRecord():
            state = record.remote_partition_delete_state
            return (
                "RemotePartitionDeleteMetadata{"
                f"topicPartition={_partition_text(record.topic_id_partition)}, "
                f"state={_state_text(PARTITION_DELETE_STATES, state)}, "
                f"eventTimestampMs={record.event_timestamp_ms}, brokerId={record.broker_id}}}"
            )
        case _:
            raise AssertionError(f"{type(record).__name__} is no record of remote log metadata")


def _segment_text(entry: RemoteLogSegmentIdEntry) -> str:
    partition = _partition_text(entry.topic_id_partition)
    return (
        f"remoteLogSegmentId=RemoteLogSegmentId{{topicIdPartition={partition}, "
        f"id={encode_uuid(entry.id)}}}"
    )


def _partition_text(entry: TopicIdPartitionEntry) -> str:
    return f"{encode_uuid(entry.id)}:{entry.name}-{entry.partition}"


def _custom_text(custom: bytes | None) -> str:
    return (
        "Optional.empty" if custom is None else f"Optional[CustomMetadata{{{len(custom)} bytes}}]"
    )


def _state_text(states: Sequence[str], state: int) -> str:
    if not 0 <= state < len(states):
        raise DecodeError(f"Unknown state {state}")
    return states[state]
