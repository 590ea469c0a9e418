"""A folder that is no backup, or is damaged, is refused by the name of the file."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from backup.folder import FolderError, NewBackup, StoredBackup
from backup.manifest import (
    GroupOffset,
    Manifest,
    PartitionBackup,
    QuotasBackup,
    TopicBackup,
    of_json,
    to_json,
)
from backup.places import Folder, PlaceError, place_at
from backup.records import Batcher, committed, count_of
from common.kafka.acls import Acl, ResourcePattern

SEGMENT = "topics/orders/0/00000000000000000000.log"
MANIFEST = Manifest(
    "cluster",
    1,
    True,
    [TopicBackup("orders", 3, {"retention.ms": "-1"}, [PartitionBackup(5, 9, 3)])],
    {"billing": [GroupOffset("orders", 0, 7, 2)]},
    [Acl(ResourcePattern(2, "orders", 3), "User:amy", "*", 3, 3)],
    [QuotasBackup({"user": None}, {"producer_byte_rate": 5.0})],
    ["amy"],
)


def record(number: int, size: int = 1) -> Any:
    return SimpleNamespace(
        offset=number, timestamp=number, key=b"k", value=b"v" * size, headers=[("h", None)]
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    backup = NewBackup(Folder(tmp_path))
    batcher = Batcher()
    with backup.partition("orders", 0) as writer:
        for number in range(3):
            for batch in batcher.add(record(number), number % 2):
                writer.append(batch)
        for batch in batcher.end():
            writer.append(batch)
    backup.end(MANIFEST)
    return tmp_path


def with_sums(folder: Path) -> None:
    """Write checksums of the files as they are, as a forger does."""
    lines = [
        f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n"
        for name in ("manifest.json", SEGMENT)
    ]
    (folder / "SHA256SUMS").write_text("".join(lines))


def test_what_is_written_is_read(folder: Path) -> None:
    stored = StoredBackup(Folder(folder))
    assert stored.manifest == MANIFEST
    stored.check(stored.manifest.topics[0])
    batches = list(stored.batches("orders", 0))
    assert [int.from_bytes(each[:8], "big") for each in batches] == [0, 1, 2]
    read = [one for each in batches for one in next(iter(committed(each, []))).records]
    assert [(one.timestamp, one.value, list(one.headers)) for one in read] == [
        (number, b"v", [("h", None)]) for number in range(3)
    ]


def test_a_batch_ends_before_it_is_too_large() -> None:
    batcher = Batcher()
    found = [full for n in range(3) for full in batcher.add(record(n, 300_000), 0)]
    assert [*map(count_of, found), *map(count_of, batcher.end())] == [1, 1, 1]
    assert list(batcher.end()) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: b"",
        lambda data: data[:70] + bytes([data[70] ^ 1]) + data[71:],
        lambda data: data[:8] + b"\x7f\xff\xff\xff" + data[12:],
        lambda data: data[:8] + b"\x80\0\0\0" + data[12:],
        lambda data: data + b"more",
        lambda data: data + data,
    ],
)
@pytest.mark.parametrize("is_forged", [False, True])
def test_a_damaged_segment_is_refused(
    folder: Path, damage: Callable[[bytes], bytes], is_forged: bool
) -> None:
    path = folder / SEGMENT
    path.write_bytes(damage(path.read_bytes()))
    if is_forged:
        with_sums(folder)
    stored = StoredBackup(Folder(folder))
    with pytest.raises(FolderError, match="topics/orders/0"):
        stored.check(stored.manifest.topics[0])


def test_a_file_that_is_missing_is_named(folder: Path) -> None:
    (folder / SEGMENT).unlink()
    stored = StoredBackup(Folder(folder))
    with pytest.raises(FolderError, match=SEGMENT):
        stored.check(stored.manifest.topics[0])
    (folder / "SHA256SUMS").unlink()
    with pytest.raises(FolderError, match="no whole backup"):
        StoredBackup(Folder(folder))


def test_a_manifest_with_another_checksum_is_refused(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"records": 3', '"records": 4'))
    with pytest.raises(FolderError, match=r"manifest\.json"):
        StoredBackup(Folder(folder))


@pytest.mark.parametrize(
    "line", ["x", f"{'0' * 64}  ../secret\n", f"{'0' * 64}  /etc/passwd\n", f"{'0' * 64}  a b\n"]
)
def test_checksums_of_strange_files_are_refused(folder: Path, line: str) -> None:
    with (folder / "SHA256SUMS").open("a") as file:
        file.write(line)
    with pytest.raises(FolderError, match="SHA256SUMS"):
        StoredBackup(Folder(folder))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("format",), 2),
        (("topics", 0, "name"), "../orders"),
        (("topics", 0, "name"), "."),
        (("topics", 0, "partitions"), []),
        (("topics", 0, "partitions", 0, "records"), -1),
        (("topics", 0, "partitions", 0, "records"), True),
        (("topics", 0, "settings", "retention.ms"), 5),
        (("topics", 0, "replication_factor"), 0),
        (("groups", "billing"), 1),
        (("groups", "billing", 0, "offset"), 4),
        (("groups", "billing", 0, "partition"), 1),
        (("groups", "billing", 0, "topic"), "prices"),
        (("acls", 0, 0), [2, "orders"]),
        (("acls", 0, 3), "read"),
        (("quotas", 0, 1), {"producer_byte_rate": "fast"}),
        (("scram_users",), None),
    ],
)
def test_a_manifest_of_another_format_is_refused(
    folder: Path, path: tuple[Any, ...], value: Any
) -> None:
    found = json.loads(to_json(MANIFEST))
    inner = found
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    (folder / "manifest.json").write_text(json.dumps(found))
    with_sums(folder)
    with pytest.raises(FolderError, match=r"manifest\.json"):
        StoredBackup(Folder(folder))


@pytest.mark.parametrize("text", [b"", b"[]", b"null", b"\xff", b"[" * 100_000])
def test_a_manifest_that_is_no_object_is_refused(folder: Path, text: bytes) -> None:
    (folder / "manifest.json").write_bytes(text)
    with_sums(folder)
    with pytest.raises(FolderError, match=r"manifest\.json"):
        StoredBackup(Folder(folder))


def test_a_folder_with_files_gets_no_backup(folder: Path) -> None:
    with pytest.raises(FolderError, match="has files already"):
        NewBackup(Folder(folder))
    assert of_json(to_json(MANIFEST).encode()) == MANIFEST


@pytest.mark.parametrize("text", ["s3://bucket", "s3:///path", "s3://key:secret@b/p", "ftp://b/p"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(PlaceError, match="s3://BUCKET/PATH"):
        place_at(text)
