"""`millstream dump-log`: print the files of a log directory, with the flags of kafka-dump-log.

It reads segments, offset and time indexes, transaction indexes, producer snapshots and snapshots of
the metadata log. It prints inconsistencies to stderr, as Kafka's tool does.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator
from struct import Struct

from broker.cli.arguments import plain_tool_parser
from broker.cli.record_text import (
    RecordDecoder,
    control_text,
    metadata_text,
    offsets_text,
    plain_text,
    share_state_text,
    transaction_text,
)
from broker.cli.waiting import Progress
from broker.log.index.offset_index import OffsetIndex
from broker.log.index.time_index import TimeIndex
from broker.log.index.transaction_index import TransactionIndex
from broker.log.producers.snapshot import decode_snapshot
from broker.log.storage import RealFile
from broker.log.walk import walk_batches
from broker.records.batch import RecordBatch
from broker.records.compression import Codec
from broker.records.errors import CorruptBatch
from broker.records.header import NO_SEQUENCE, increment_sequence
from broker.records.record import Record

INT32_MAX = 2**31 - 1
_digits = re.compile(r"[0-9]{1,20}").fullmatch


def main(arguments: list[str]) -> int:
    """Dump the files; return 1 if one cannot be read."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.remote_log_metadata_decoder:
        parser.error("there is no tiered storage here, so there are no such records to decode")
    decoder = _decoder(options)
    if decoder is not plain_text:
        options.print_data_log = True
    status = 0
    for path in options.files.split(","):
        print(f"Dumping {path}")
        try:
            _dump_file(path, options, decoder)
        except OSError as error:
            print(f"{error.filename or path}: {error.strerror}", file=sys.stderr)
            status = 1
        except (ValueError, CorruptBatch) as error:
            print(f"{path}: {error}", file=sys.stderr)
            status = 1
    return status


def _parser() -> argparse.ArgumentParser:
    parser = plain_tool_parser("dump-log", "Print what is in the files of a log directory.")
    parser.add_argument("--files", required=True, help="the files to dump, separated by commas")
    for flag, text in (
        ("--print-data-log", "print keys and values; implied by the decoders"),
        ("--deep-iteration", "print the records too, not only the batches"),
        ("--index-sanity-check", "only check what a broker checks when it opens an index"),
        ("--verify-index-only", "check indexes against the log and print nothing else"),
        ("--offsets-decoder", "read the records as those of __consumer_offsets"),
        ("--transaction-log-decoder", "read the records as those of __transaction_state"),
        ("--cluster-metadata-decoder", "read the records as those of __cluster_metadata"),
        ("--share-group-state-decoder", "read the records as those of __share_group_state"),
        ("--skip-record-metadata", "print keys and values only"),
    ):
        parser.add_argument(flag, action="store_true", help=text)
    parser.add_argument(
        "--remote-log-metadata-decoder", action="store_true", help=argparse.SUPPRESS
    )
    parser.add_argument("--max-message-size", type=int, default=5 * 1024 * 1024, metavar="BYTES")
    parser.add_argument("--max-bytes", type=int, default=INT32_MAX, metavar="BYTES")
    return parser


def _decoder(options: argparse.Namespace) -> RecordDecoder:
    if options.offsets_decoder:
        return offsets_text
    if options.transaction_log_decoder:
        return transaction_text
    if options.share_group_state_decoder:
        return share_state_text
    return metadata_text if options.cluster_metadata_decoder else plain_text


def _dump_file(path: str, options: argparse.Namespace, decoder: RecordDecoder) -> None:
    suffix = os.path.splitext(path)[1]
    if suffix in (".log", ".checkpoint"):
        _dump_log(path, options, decoder)
    elif suffix == ".index":
        _dump_offset_index(path, options)
    elif suffix == ".timeindex":
        _dump_time_index(path, options)
    elif suffix == ".txnindex":
        _dump_transaction_index(path)
    elif suffix == ".snapshot":
        _dump_producers(path)
    else:
        print(f"Ignoring unknown file {path}", file=sys.stderr)


def _base_offset(path: str) -> int:
    name = os.path.basename(path).partition(".")[0]
    if not _digits(name):
        raise ValueError("the name is no base offset, such as 00000000000000000000")
    return int(name)


def _read(path: str) -> bytes:
    file = RealFile(path, os.O_RDONLY)
    return file.read(0, file.size_bytes())


# Segments and snapshots of the metadata log.


def _dump_log(path: str, options: argparse.Namespace, decoder: RecordDecoder) -> None:
    file = RealFile(path, os.O_RDONLY)
    _print_title(path)
    size = file.size_bytes()
    end = min(size, options.max_bytes)
    valid_bytes, last_offset, gaps = 0, -1, []
    try:
        progress = Progress(prints_results=True)
        for position, batch in walk_batches(file, 0, end):
            progress.tell(_read_of(path, position, end))
            print(_batch_text(position, batch))
            valid_bytes = position + batch.header.size_bytes
            if not (options.deep_iteration or options.print_data_log):
                continue
            for record in batch.records():
                if last_offset >= 0 and record.offset != last_offset + 1:
                    gaps.append((last_offset, record.offset))
                last_offset = record.offset
                print(_record_text(record, batch, options, decoder))
    except CorruptBatch as error:
        print(f"{path} is damaged at byte {valid_bytes}: {error}", file=sys.stderr)
    if size > valid_bytes and options.max_bytes == INT32_MAX:
        print(f"Found {size - valid_bytes} invalid bytes at the end of {os.path.basename(path)}")
    if gaps:
        print(f"Non-consecutive offsets in {os.path.abspath(path)}", file=sys.stderr)
    for first, second in gaps:
        print(f"  {first} is followed by {second}", file=sys.stderr)


def _read_of(path: str, position: int, end: int) -> Callable[[], str]:
    return lambda: f"{os.path.basename(path)}: {position} of {end} bytes read"


def _print_title(path: str) -> None:
    name = os.path.basename(path)
    if name.endswith(".log"):
        print(f"Log starting offset: {_base_offset(path)}")
    elif name == "bootstrap.checkpoint":
        print("KRaft bootstrap snapshot")
    else:
        offset, _, epoch = name.removesuffix(".checkpoint").partition("-")
        if not (_digits(offset) and _digits(epoch)):
            raise ValueError("the name is no end offset with an epoch, such as 0-0")
        print(f"Snapshot end offset: {int(offset)}, epoch: {int(epoch)}")


def _batch_text(position: int, batch: RecordBatch) -> str:
    header = batch.header
    horizon_ms = header.delete_horizon_ms
    fields = {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.record_count,
        "baseSequence": header.base_sequence,
        "lastSequence": header.last_sequence,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.partition_leader_epoch,
        "isTransactional": _boolean(header.is_transactional),
        "isControl": _boolean(header.is_control),
        "deleteHorizonMs": _optional(horizon_ms),
        "position": position,
        _timestamp_type(batch): header.max_timestamp,
        "size": header.size_bytes,
        "magic": header.magic,
        "compresscodec": _codec_name(header.codec),
        "crc": header.crc,
        "isvalid": _boolean(batch.has_valid_crc),
    }
    return " ".join(f"{name}: {value}" for name, value in fields.items())


def _codec_name(number: int) -> str:
    return Codec(number).name.lower() if number <= Codec.ZSTD else f"unknown({number})"


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _optional(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def _timestamp_type(batch: RecordBatch) -> str:
    return "LogAppendTime" if batch.header.uses_log_append_time else "CreateTime"


def _record_text(
    record: Record, batch: RecordBatch, options: argparse.Namespace, decoder: RecordDecoder
) -> str:
    parts = ["|"]
    if not options.skip_record_metadata:
        parts.append(_record_metadata_text(record, batch))
        if batch.header.is_control:
            parts.append(control_text(record))
    if options.print_data_log and not batch.header.is_control:
        key, payload = decoder(record)
        parts += [f"key: {key}"] if key is not None else []
        parts += [f"payload: {payload}"] if payload is not None else []
    return " ".join(parts) if len(parts) > 1 else ""


def _record_metadata_text(record: Record, batch: RecordBatch) -> str:
    base_sequence = batch.header.base_sequence
    sequence = NO_SEQUENCE
    if base_sequence != NO_SEQUENCE:
        sequence = increment_sequence(base_sequence, record.offset - batch.base_offset)
    names = ",".join(name for name, _ in record.headers)
    return (
        f"offset: {record.offset} {_timestamp_type(batch)}: {record.timestamp_ms} "
        f"keySize: {_size(record.key)} valueSize: {_size(record.value)} "
        f"sequence: {sequence} headerKeys: [{names}]"
    )


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


# Indexes and producer snapshots.

_OFFSET_ENTRY, _TIME_ENTRY = Struct(">ii"), Struct(">qi")


def _entries(layout: Struct, data: bytes) -> Iterator[tuple[int, ...]]:
    """Iterate over whole entries. Raise CorruptBatch at the end if there is a part of one."""
    rest = len(data) % layout.size
    yield from layout.iter_unpack(data[: len(data) - rest])
    if rest:
        raise CorruptBatch(f"{rest} bytes at the end are no entry of {layout.size} bytes")


def _dump_offset_index(path: str, options: argparse.Namespace) -> None:
    data, base_offset = _read(path), _base_offset(path)
    log = RealFile(os.path.splitext(path)[0] + ".log", os.O_RDONLY)
    size = log.size_bytes()
    if not data:
        print(f"{path} is empty.")
        return
    if options.index_sanity_check:
        _print_sanity(path, OffsetIndex.from_bytes(data, size) is not None)
        return
    mismatches = []
    progress = Progress(prints_results=not options.verify_index_only)
    for number, (relative_offset, position) in enumerate(_entries(_OFFSET_ENTRY, data)):
        if relative_offset == 0 and number:
            break  # The file was preallocated: zeros from here on.
        offset = base_offset + relative_offset
        progress.tell(_read_of(path, 8 * number, len(data)))
        end = min(size, position + options.max_message_size)
        is_inside = 0 <= position < end
        _, batch = next(walk_batches(log, position, end), (0, None)) if is_inside else (0, None)
        last_offset = -1 if batch is None else batch.last_offset
        if last_offset != offset:
            mismatches.append((offset, last_offset))
        if not options.verify_index_only:
            print(f"offset: {offset} position: {position}")
    if mismatches:
        print(f"Mismatches in :{os.path.abspath(path)}", file=sys.stderr)
    for offset, last_offset in mismatches:
        print(f"  Index offset: {offset}, log offset: {last_offset}", file=sys.stderr)


def _dump_time_index(path: str, options: argparse.Namespace) -> None:
    data, base_offset = _read(path), _base_offset(path)
    log = RealFile(os.path.splitext(path)[0] + ".log", os.O_RDONLY)
    if options.index_sanity_check:
        _print_sanity(path, TimeIndex.from_bytes(data) is not None)
        return
    offset_index = OffsetIndex.from_bytes(
        _read(os.path.splitext(path)[0] + ".index"), log.size_bytes()
    )
    previous_ms = -1
    progress = Progress(prints_results=not options.verify_index_only)
    for number, (timestamp_ms, relative_offset) in enumerate(_entries(_TIME_ENTRY, data)):
        if relative_offset == 0 and number:
            break  # The file was preallocated: zeros from here on.
        progress.tell(_read_of(path, 12 * number, len(data)))
        start = (offset_index or OffsetIndex()).lookup(relative_offset)
        offset = base_offset + relative_offset
        _check_time_entry(log, start, offset, timestamp_ms)
        if previous_ms >= timestamp_ms:
            print(f"Found out of order timestamp in :{os.path.abspath(path)}", file=sys.stderr)
            text = f"  Index timestamp: {timestamp_ms}, Previously indexed timestamp: {previous_ms}"
            print(text, file=sys.stderr)
        if not options.verify_index_only:
            print(f"timestamp: {timestamp_ms} offset: {offset}")
        previous_ms = timestamp_ms


def _check_time_entry(log: RealFile, start: int, offset: int, timestamp_ms: int) -> None:
    """Compare an entry with the batch that ends at its offset."""
    batches = (batch for _, batch in walk_batches(log, start, log.size_bytes()))
    batch = next((batch for batch in batches if batch.last_offset >= offset), None)
    found = -1 if batch is None else batch.last_offset
    if batch is None or found != offset:
        print("The following indexed offsets are not found in the log.", file=sys.stderr)
        print(f"Indexed offset: {offset}, found log offset: {found}", file=sys.stderr)
        return
    latest_ms = max((record.timestamp_ms for record in batch.records()), default=-1)
    if latest_ms != timestamp_ms:
        print("Found timestamp mismatch", file=sys.stderr)
        print(f"  Index timestamp: {timestamp_ms}, log timestamp: {latest_ms}", file=sys.stderr)


def _print_sanity(path: str, is_sane: bool) -> None:
    if not is_sane:
        raise CorruptBatch("the index is corrupt and would be rebuilt")
    print(f"{path} passed sanity check.")


def _dump_transaction_index(path: str) -> None:
    index = TransactionIndex.from_bytes(_read(path), _base_offset(path))
    if index is None:
        raise CorruptBatch("the index is corrupt and would be rebuilt")
    for entry in index.entries:
        print(
            f"version: 0 producerId: {entry.producer_id} firstOffset: {entry.first_offset} "
            f"lastOffset: {entry.last_offset} lastStableOffset: {entry.last_stable_offset}"
        )


def _dump_producers(path: str) -> None:
    for entry in decode_snapshot(_read(path)):
        first_offset = entry.transaction_first_offset
        text = (
            f"producerId: {entry.producer_id} producerEpoch: {entry.epoch} "
            f"coordinatorEpoch: {entry.coordinator_epoch} "
            f"currentTxnFirstOffset: {_optional(first_offset if first_offset >= 0 else None)} "
            f"lastTimestamp: {entry.last_timestamp_ms} "
        )
        for batch in entry.batches:
            text += (
                f"firstSequence: {batch.base_sequence} lastSequence: {batch.last_sequence} "
                f"lastOffset: {batch.last_offset} offsetDelta: {batch.offset_delta} "
                f"timestamp: {batch.timestamp_ms}"
            )
        print(text)
