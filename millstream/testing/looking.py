"""A look into a cluster: the decoded records of a topic and the lag of a group; waits for both.

    view = ClusterView("localhost:9092", registry_url="http://localhost:8081")
    view.wait_for_records("orders", 10)
    assert view.group("fraud").lag == 0

It works with any Kafka. `LocalBroker` and `LocalCluster` have the same methods. A wait that ends in
vain raises NotSeenError, whose text shows the topic as a table, with open and aborted transactions
and markers, or the group's offsets.
"""

import json
import subprocess
import tempfile
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, Any, Self

from millstream.launch import program_command, program_environment
from millstream.processes.forked_process import BROKERS, CAN_FORK, ForkedProcess
from millstream.testing.block import Block

TIMEOUT_SECONDS = 10.0
LOOK_SECONDS = 0.02
SHOWN_ROWS = 50
_CELL = 40
_MODULE = "stack.looking"
_MISSING = "UNKNOWN_TOPIC_OR_PARTITION"


class KafkaRefusedError(RuntimeError):
    """A cluster did not answer what it was asked; `code` is Kafka's name of the error."""

    def __init__(self, text: str, code: str) -> None:
        super().__init__(text)
        self.code = code


class NotSeenError(AssertionError):
    """What a test waited for did not come; the text shows what there was."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a topic.

    `key` and `value` are decoded: by the schema whose id they begin with if there is a registry;
    a JSON object or array; other text; everything else as hexadecimal digits. `transaction` is ""
    outside of a transaction, or "open", "committed", "aborted", "commit marker", "abort marker".
    """

    topic: str
    partition: int
    offset: int
    timestamp: datetime
    key: Any
    value: Any
    headers: tuple[tuple[str, bytes | None], ...]
    transaction: str
    raw_key: bytes | None
    raw_value: bytes | None

    @property
    def is_control(self) -> bool:
        """True for a marker, which consumers do not get."""
        return self.transaction not in ("", "open", "committed", "aborted")

    @property
    def is_committed(self) -> bool:
        """True for what a consumer of `read_committed` gets, perhaps after an open transaction."""
        return self.transaction in ("", "committed")


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group, with the topics and partitions that it is assigned."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """How far a group is in one partition; `offset` is None before the first commit."""

    topic: str
    partition: int
    offset: int | None
    end_offset: int
    lag: int


@dataclass(frozen=True, slots=True)
class Group:
    """A group of consumers. The `state` of a group that does not exist is "Dead"."""

    group_id: str
    state: str
    type: str
    members: tuple[Member, ...]
    offsets: tuple[GroupOffset, ...]

    @property
    def lag(self) -> int | None:
        """The records that it has to read and commit; None if it has no partitions at all."""
        return sum(each.lag for each in self.offsets) if self.offsets else None


class Looks:
    """The looks of a broker or a cluster that runs for a test."""

    registry_url = ""
    """The schema registry whose schemas decode keys and values; "" for none."""
    _view: "ClusterView | None" = None

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients."""
        raise NotImplementedError

    def client_file(self) -> str:
        """Return a file of client settings, "" if none are needed."""
        raise NotImplementedError

    def view(self) -> "ClusterView":
        """Return what looks into the cluster."""
        if self._view is None:
            self._view = ClusterView("")
        view = self._view
        # They may change: a restored broker may have another port.
        view.bootstrap_servers, view.registry_url = self.bootstrap_servers, self.registry_url
        view.command_config = self.client_file()
        return view

    def _close_view(self) -> None:
        if self._view is not None:
            self._view.close()
            self._view = None

    def records(
        self, topic: str, partition: int | None = None, *, read_committed: bool = False
    ) -> list[Record]:
        """Return the records of a topic, decoded; see ClusterView."""
        return self.view().records(topic, partition, read_committed=read_committed)

    def group(self, group_id: str) -> Group:
        """Return a group of consumers with its members, offsets and lag."""
        return self.view().group(group_id)

    def wait_for_records(
        self,
        topic: str,
        count: int,
        timeout: float = TIMEOUT_SECONDS,
        *,
        read_committed: bool = False,
    ) -> list[Record]:
        """Return the records of a topic when there are `count`; raise NotSeenError with a table."""
        return self.view().wait_for_records(topic, count, timeout, read_committed=read_committed)

    def wait_for_lag(self, group_id: str, lag: int = 0, timeout: float = TIMEOUT_SECONDS) -> Group:
        """Return a group when its lag is `lag` or less; raise NotSeenError with its offsets."""
        return self.view().wait_for_lag(group_id, lag, timeout)


class ClusterView(Block):
    """Looks into a cluster through a process of its own, which starts at the first question."""

    def __init__(
        self, bootstrap_servers: str, *, registry_url: str = "", command_config: str = ""
    ) -> None:
        """`command_config` is a file of client settings, for a cluster with security."""
        self.bootstrap_servers = bootstrap_servers
        self.registry_url = registry_url
        self.command_config = command_config
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | ForkedProcess | None = None
        self._log: IO[str] | None = None

    def start(self) -> Self:
        """Do nothing: the process starts when it is needed."""
        return self

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    stream.close()
            self._process.wait()
            self._process = None
        if self._log is not None:
            self._log.close()
            self._log = None

    # --- a look ---

    def records(
        self,
        topic: str,
        partition: int | None = None,
        *,
        read_committed: bool = False,
        with_markers: bool = False,
    ) -> list[Record]:
        """Return the records of a topic, or of one partition, in the order of their offsets.

        With `read_committed` those of open and aborted transactions are left out. Raises
        KafkaRefusedError if there is no such topic, and for a topic of more than 100,000 records.
        """
        told = self._ask({"records": topic, "partition": partition})["records"]
        found = [_record(topic, each) for each in told]
        return [
            each
            for each in found
            if (with_markers or not each.is_control)
            and (each.is_committed or each.is_control or not read_committed)
        ]

    def group(self, group_id: str) -> Group:
        """Return a group of consumers with its members, offsets and lag."""
        told = self._ask({"group": group_id})["group"]
        members = (
            Member(**{**each, "partitions": tuple(map(tuple, each["partitions"]))})
            for each in told.pop("members")
        )
        offsets = tuple(GroupOffset(**each) for each in told.pop("offsets"))
        return Group(members=tuple(members), offsets=offsets, **told)

    def table(self, topic: str) -> str:
        """Return the last records of a topic as a table, for messages."""
        try:
            rows = self.records(topic, with_markers=True)
        except KafkaRefusedError as error:
            return f"topic {topic}: {error}"
        title = f"topic {topic}: {len(rows)} records and markers"
        shown = rows[-SHOWN_ROWS:]
        if len(shown) < len(rows):
            title += f", the last {len(shown)}"
        cells = [["partition", "offset", "time (UTC)", "key", "value", "transaction"]]
        cells += [
            [
                str(each.partition),
                str(each.offset),
                each.timestamp.strftime("%H:%M:%S.%f")[:-3],
                _short(each.key),
                _short(each.value),
                each.transaction or "-",
            ]
            for each in shown
        ]
        return "\n".join([title, *_aligned(cells)])

    # --- waits ---

    def wait_for_records(
        self,
        topic: str,
        count: int,
        timeout: float = TIMEOUT_SECONDS,
        *,
        read_committed: bool = False,
    ) -> list[Record]:
        """Return the records of a topic when there are at least `count`; `timeout` is in seconds.

        A topic that does not exist yet has none. Raises NotSeenError.
        """
        found: list[Record] = []

        def is_there() -> bool:
            nonlocal found
            try:
                found = self.records(topic, read_committed=read_committed)
            except KafkaRefusedError as error:
                if error.code != _MISSING:
                    raise
                found = []
            return len(found) >= count

        if not _wait(is_there, timeout):
            kind = "committed records" if read_committed else "records"
            raise NotSeenError(
                f"{len(found)} of {count} {kind} after {timeout:g} s\n{self.table(topic)}"
            )
        return found

    def wait_for_lag(self, group_id: str, lag: int = 0, timeout: float = TIMEOUT_SECONDS) -> Group:
        """Return a group when its lag is `lag` or less, and it has partitions; raises NotSeenError.

        A partition without a committed offset lags by all of its records.
        """
        found = self.group(group_id)

        def is_there() -> bool:
            nonlocal found
            found = self.group(group_id)
            return found.lag is not None and found.lag <= lag

        if not _wait(is_there, timeout):
            raise NotSeenError(
                f"the lag is {found.lag}, not {lag}, after {timeout:g} s\n{_group_table(found)}"
            )
        return found

    # --- internal ---

    def _ask(self, about: Mapping[str, object]) -> dict[str, Any]:
        question = {
            "bootstrap_servers": self.bootstrap_servers,
            "registry_url": self.registry_url,
            "command_config": self.command_config,
            **about,
        }
        with self._lock:
            process = self._running()
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(json.dumps(question) + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
            except OSError:
                line = ""
            if not line:
                raise KafkaRefusedError(self._last_words(), "")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise KafkaRefusedError(answer["error"], answer["code"])
        return answer

    def _running(self) -> "subprocess.Popen[str] | ForkedProcess":
        if self._process is None:
            self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - `close` closes it
            environment = program_environment()
            self._process = (
                BROKERS.start(_MODULE, (), environment, self._log, is_bound=True)
                if CAN_FORK
                else subprocess.Popen(
                    program_command(_MODULE),
                    env=environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._log,
                    text=True,
                )
            )
        return self._process

    def _last_words(self) -> str:
        assert self._log is not None
        self._log.seek(0)
        said = self._log.read()[-2_000:]
        return f"the process that looks into the cluster has ended\n{said}"


def _record(topic: str, told: Mapping[str, Any]) -> Record:
    return Record(
        topic,
        told["partition"],
        told["offset"],
        datetime.fromtimestamp(told["timestamp_ms"] / 1000, UTC),
        told["key"],
        told["value"],
        tuple((name, _bytes(value)) for name, value in told["headers"]),
        told["transaction"],
        _bytes(told["raw_key"]),
        _bytes(told["raw_value"]),
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


def _wait(is_there: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not is_there():
        if time.monotonic() >= deadline:
            return False
        time.sleep(LOOK_SECONDS)
    return True


def _short(value: object) -> str:
    if value is None:
        return "null"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _CELL else text[: _CELL - 3] + "..."


def _group_table(group: Group) -> str:
    cells = [["topic", "partition", "offset", "end offset", "lag", "member"]]
    owners = {each: member.client_id for member in group.members for each in member.partitions}
    cells += [
        [
            each.topic,
            str(each.partition),
            "-" if each.offset is None else str(each.offset),
            str(each.end_offset),
            str(each.lag),
            owners.get((each.topic, each.partition), "-"),
        ]
        for each in group.offsets
    ]
    title = f"group {group.group_id}: {group.state}, {len(group.members)} members"
    return "\n".join([title, *_aligned(cells)])


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
