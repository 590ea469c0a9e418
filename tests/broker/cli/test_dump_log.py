"""The dump tool's lines, as Apache Kafka's own tool prints them (see tests/interop)."""

from pathlib import Path

import pytest

from broker.cli.dump_log import main
from broker.log.append import AppendOrigin
from broker.log.config import LogConfig
from broker.log.storage import RealStorage
from broker.records.build import build_batch
from broker.records.control import EndMarker, build_end_marker
from common.kafka.protocol.message import Message
from common.kafka.protocol.records.group import OffsetCommitKey, OffsetCommitValue
from common.kafka.protocol.records.metadata import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    TopicRecord,
    UserScramCredentialRecord,
    encode_metadata_record,
)
from common.kafka.protocol.records.share_state import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
    StateBatch,
)
from common.kafka.protocol.structs import encode_struct
from tests.lib.logs import NOW_MS, open_log


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A partition with data, an aborted transaction, a compressed batch, and a producer."""
    log = open_log(RealStorage(), LogConfig(index_interval_bytes=0), directory=f"{tmp_path}/t-0")
    batches = [
        build_batch([(b"k", b"v", [("a", b"1"), ("b", None)], NOW_MS)], compression=4),
        build_batch(
            [(None, None, (), NOW_MS + 1)] * 2,
            producer_id=7,
            producer_epoch=1,
            base_sequence=4,
            is_transactional=True,
        ),
        build_end_marker(7, 1, EndMarker(False, 3), NOW_MS + 2),
    ]
    for batch in batches:
        is_marker = batch is batches[-1]
        origin = AppendOrigin.COORDINATOR if is_marker else AppendOrigin.CLIENT
        log.append_as_leader(batch, leader_epoch=2, timestamp_ms=NOW_MS, origin=origin)
    log.close()
    return tmp_path / "t-0"


def dump(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str], str]:
    status = main(list(arguments))
    captured = capsys.readouterr()
    return status, captured.out.splitlines(), captured.err


def test_a_segment(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = f"{folder}/{0:020d}.log"
    status, lines, errors = dump(capsys, "--print-data-log", "--files", path)
    assert (status, errors) == (0, "")
    assert lines[:2] == [f"Dumping {path}", "Log starting offset: 0"]
    assert lines[2].startswith(
        "baseOffset: 0 lastOffset: 0 count: 1 baseSequence: -1 lastSequence: -1 producerId: -1 "
        "producerEpoch: -1 partitionLeaderEpoch: 2 isTransactional: false isControl: false "
        f"deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: {NOW_MS} size: "
    )
    assert lines[2].endswith(" isvalid: true")
    assert " compresscodec: zstd " in lines[2]
    assert lines[3] == (
        f"| offset: 0 CreateTime: {NOW_MS} keySize: 1 valueSize: 1 sequence: -1 "
        "headerKeys: [a,b] key: k payload: v"
    )
    assert lines[6] == (
        f"| offset: 2 CreateTime: {NOW_MS + 1} keySize: -1 valueSize: -1 sequence: 5 headerKeys: []"
    )
    assert lines[8].endswith("headerKeys: [] endTxnMarker: ABORT coordinatorEpoch: 3")
    status, lines, _ = dump(capsys, "--skip-record-metadata", "--print-data-log", "--files", path)
    assert lines[3] == "| key: k payload: v"
    status, lines, _ = dump(capsys, "--files", path)
    assert len(lines) == 5


def test_indexes_and_snapshots(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = f"{folder}/{0:020d}"
    _, lines, errors = dump(capsys, "--files", f"{base}.index,{base}.timeindex,{base}.txnindex")
    assert errors == ""
    assert lines[1].startswith("offset: 2 position: ")
    assert f"timestamp: {NOW_MS + 1} offset: 2" in lines
    assert lines[-1] == (
        "version: 0 producerId: 7 firstOffset: 1 lastOffset: 3 lastStableOffset: 4"
    )
    _, lines, _ = dump(capsys, "--files", f"{folder}/{4:020d}.snapshot")
    assert lines[1] == (
        "producerId: 7 producerEpoch: 1 coordinatorEpoch: 3 currentTxnFirstOffset: "
        f"OptionalLong.empty lastTimestamp: {NOW_MS + 2} firstSequence: 4 lastSequence: 5 "
        f"lastOffset: 2 offsetDelta: 1 timestamp: {NOW_MS + 2}"
    )
    _, lines, _ = dump(capsys, "--index-sanity-check", "--files", f"{base}.index")
    assert lines[1] == f"{base}.index passed sanity check."
    _, lines, _ = dump(capsys, "--verify-index-only", "--files", f"{base}.index")
    assert len(lines) == 1


def test_damage_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-3])
    _, lines, _ = dump(capsys, "--files", str(path))
    assert lines[-1] == f"Found 75 invalid bytes at the end of {path.name}"
    index = folder / f"{0:020d}.index"
    index.write_bytes(bytes([0, 0, 0, 1]) + index.read_bytes()[4:])
    _, _, errors = dump(capsys, "--files", str(index))
    assert errors.splitlines()[1] == "  Index offset: 1, log offset: 2"
    index.write_bytes(bytes(20))
    status, _, errors = dump(capsys, "--index-sanity-check", "--files", str(index))
    assert (status, "corrupt" in errors) == (1, True)
    status, _, errors = dump(capsys, "--files", f"{folder}/partition.metadata,{folder}/nope.log")
    assert status == 1
    assert "Ignoring unknown file" in errors


def test_a_file_that_cannot_be_dumped_is_told_in_words(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = f"{folder}/{0:020d}"
    lone = tmp_path / f"{5:020d}.index"
    lone.write_bytes(b"")
    odd = tmp_path / f"{6:020d}.log"
    odd.mkdir()
    Path(f"{base}.index").write_bytes(Path(f"{base}.index").read_bytes() + b"abc")
    named = tmp_path / "mine.log"
    named.write_bytes(b"")
    snapshot = tmp_path / "mine.checkpoint"
    snapshot.write_bytes(b"")
    for path, told in (
        (f"{tmp_path}/nosuch.log", f"{tmp_path}/nosuch.log: No such file or directory\n"),
        (str(lone), f"{lone.with_suffix('.log')}: No such file or directory\n"),
        (str(odd), f"{odd}: Is a directory\n"),
        (str(named), f"{named}: the name is no base offset, such as {0:020d}\n"),
        (str(snapshot), f"{snapshot}: the name is no end offset with an epoch, such as 0-0\n"),
        (f"{base}.index", f"{base}.index: 3 bytes at the end are no entry of 8 bytes\n"),
    ):
        status, _, errors = dump(capsys, "--files", path)
        assert (status, errors) == (1, told)


@pytest.mark.parametrize(
    ("decoder", "key", "value", "told"),
    [
        ("offsets", None, b"v", "offset 0 using the specified decoder (message had a missing key)"),
        ("offsets", b"\0\1", b"v", "skipping. OffsetCommitKey v0: the data ends too early"),
        ("transaction-log", b"k", b"v", "skipping. Could not read version from key's buffer."),
        ("share-group-state", b"k", b"v", "skipping. Could not read version from key's buffer."),
        ("cluster-metadata", None, b"hello", "unknown frame version 104(only frame version 1 is "),
        ("cluster-metadata", None, b"", "skipping. Error while reading frame version"),
    ],
)
def test_ordinary_records_are_told_in_words(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    decoder: str,
    key: bytes | None,
    value: bytes,
    told: str,
) -> None:
    path = write_segment(tmp_path, (key, value))
    _, lines, errors = dump(capsys, f"--{decoder}-decoder", "--files", path)
    assert told in "\n".join([*lines, errors])


def test_records_of_tiered_storage_are_refused_in_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["--files", "x.log", "--remote-log-metadata-decoder"])
    assert "there is no tiered storage here" in capsys.readouterr().err


def write_segment(tmp_path: Path, *records: tuple[bytes | None, bytes | None]) -> str:
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(build_batch([(key, value, (), NOW_MS) for key, value in records]))
    return str(path)


def test_the_decoders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = b"\x00\x01" + encode_struct(OffsetCommitKey(group="g", topic="t", partition=3), 0)
    value = OffsetCommitValue(offset=9, leader_epoch=1, metadata="m", commit_timestamp=5)
    path = write_segment(
        tmp_path,
        (key, b"\x00\x03" + encode_struct(value, 3)),
        (key, None),
        (b"\x00\x63", b""),
        (b"\x00", b""),
    )
    _, lines, _ = dump(capsys, "--offsets-decoder", "--skip-record-metadata", "--files", path)
    shown_key = '| key: {"type":"1","data":{"group":"g","topic":"t","partition":3}}'
    assert lines[3:5] == [
        f'{shown_key} payload: {{"version":"3","data":{{"offset":9,"leaderEpoch":1,"metadata":"m",'
        '"commitTimestamp":5}}',
        f"{shown_key} payload: <DELETE>",
    ]
    assert lines[5] == "| key: Unknown record type 99 at offset 2, skipping."
    assert lines[6] == (
        "| key: Error at offset 3, skipping. Could not read version from key's buffer."
    )

    path = write_segment(
        tmp_path, (None, encode_metadata_record(TopicRecord(name="t", topic_id=bytes(16))))
    )
    _, lines, _ = dump(capsys, "--cluster-metadata-decoder", "--files", path)
    assert lines[3].endswith(
        'payload: {"type":"TOPIC_RECORD","version":0,"data":{"name":"t",'
        '"topicId":"AAAAAAAAAAAAAAAAAAAAAA"}}'
    )

    transaction = b"\x00\x00\x00\x02id"
    path = write_segment(tmp_path, (transaction, None))
    _, lines, _ = dump(capsys, "--transaction-log-decoder", "--files", path)
    assert 'key: {"type":"0","data":{"transactionalId":"id"}} payload: <DELETE>' in lines[3]


SHOWN_BY_APACHE_KAFKA = [
    (
        AccessControlEntryRecord(
            id=bytes(range(16)),
            resource_type=2,
            resource_name="t",
            pattern_type=3,
            principal="User:a",
            host="*",
            operation=3,
            permission_type=3,
        ),
        '{"type":"ACCESS_CONTROL_ENTRY_RECORD","version":0,"data":{"id":"AAECAwQFBgcICQoLDA0ODw",'
        '"resourceType":2,"resourceName":"t","patternType":3,"principal":"User:a","host":"*",'
        '"operation":3,"permissionType":3}}',
    ),
    (
        RemoveAccessControlEntryRecord(id=bytes(range(16))),
        '{"type":"REMOVE_ACCESS_CONTROL_ENTRY_RECORD","version":0,'
        '"data":{"id":"AAECAwQFBgcICQoLDA0ODw"}}',
    ),
    (
        UserScramCredentialRecord(
            name="u",
            mechanism=1,
            salt=b"\1\2",
            stored_key=b"\3",
            server_key=b"\4",
            iterations=4096,
        ),
        '{"type":"USER_SCRAM_CREDENTIAL_RECORD","version":0,"data":{"name":"u","mechanism":1,'
        '"salt":"AQI=","storedKey":"Aw==","serverKey":"BA==","iterations":4096}}',
    ),
    (
        DelegationTokenRecord(
            owner="User:o",
            requester="User:r",
            renewers=["User:x"],
            issue_timestamp=1,
            max_timestamp=2,
            expiration_timestamp=3,
            token_id="id",
        ),
        '{"type":"DELEGATION_TOKEN_RECORD","version":0,"data":{"owner":"User:o",'
        '"requester":"User:r","renewers":["User:x"],"issueTimestamp":1,"maxTimestamp":2,'
        '"expirationTimestamp":3,"tokenId":"id"}}',
    ),
]


@pytest.mark.parametrize(("record", "shown"), SHOWN_BY_APACHE_KAFKA)
def test_records_about_security_are_shown_as_apache_kafka_shows_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], record: Message, shown: str
) -> None:
    path = write_segment(tmp_path, (None, encode_metadata_record(record)))
    _, lines, _ = dump(capsys, "--cluster-metadata-decoder", "--files", path)
    assert lines[3].endswith(f"payload: {shown}")


def test_share_group_state_is_shown_as_apache_kafka_shows_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic_id = bytes(range(16))
    batches = [StateBatch(first_offset=1, last_offset=2, delivery_state=2, delivery_count=3)]
    snapshot = ShareSnapshotValue(
        snapshot_epoch=1,
        state_epoch=2,
        leader_epoch=3,
        start_offset=4,
        delivery_complete_count=6,
        create_timestamp=7,
        write_timestamp=8,
        state_batches=batches,
    )
    update = ShareUpdateValue(
        snapshot_epoch=1, leader_epoch=3, start_offset=4, state_batches=batches
    )
    keys = [
        ShareSnapshotKey(group_id="g", topic_id=topic_id, partition=1),
        ShareUpdateKey(group_id="g", topic_id=topic_id, partition=1),
    ]
    snapshot_key, update_key = (bytes([0, n]) + encode_struct(keys[n], 0) for n in (0, 1))
    path = write_segment(
        tmp_path,
        (snapshot_key, b"\0\0" + encode_struct(snapshot, 0)),
        (update_key, b"\0\0" + encode_struct(update, 0)),
        (update_key, None),
    )
    flags = ("--share-group-state-decoder", "--skip-record-metadata")
    _, lines, _ = dump(capsys, *flags, "--files", path)
    shown_ids = '"data":{"groupId":"g","topicId":"AAECAwQFBgcICQoLDA0ODw","partition":1}}'
    shown_batches = (
        '"stateBatches":[{"firstOffset":1,"lastOffset":2,"deliveryState":2,"deliveryCount":3}]}}'
    )
    assert lines[3:] == [
        f'| key: {{"type":"0",{shown_ids} payload: {{"version":"0","data":{{"snapshotEpoch":1,'
        '"stateEpoch":2,"leaderEpoch":3,"startOffset":4,"deliveryCompleteCount":6,'
        f'"createTimestamp":7,"writeTimestamp":8,{shown_batches}',
        f'| key: {{"type":"1",{shown_ids} payload: {{"version":"0","data":{{"snapshotEpoch":1,'
        f'"leaderEpoch":3,"startOffset":4,{shown_batches}',
        f'| key: {{"type":"1",{shown_ids} payload: <DELETE>',
    ]
