"""Source offsets in topics: the worker's own offset topic, and the connectors' own ones.

A connector with `offsets.storage.topic` writes its offsets to that topic and to the worker's topic.
It reads its own topic first; a source partition that is missing there is read from the worker's. A
connector that writes to another cluster in transactions keeps its offsets in that cluster, since a
transaction cannot span two clusters.
"""

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from connect.herder.offsets import OffsetRecord, OffsetState
from connect.worker.client_settings import librdkafka_settings, with_prefix
from connect.worker.environment import Environment
from connect.worker.offset_store import Entries, OffsetStore
from connect.worker.topic_log import Entry, LogTopic, Positions, TopicLog
from millstream.connect.connectors import SourcePartition
from millstream.connect.errors import ConnectException

log = logging.getLogger(__name__)

_SETTING: Final = "offsets.storage.topic"
_WORKERS: Final = "offset.storage.topic"
_SERVERS: Final = "bootstrap.servers"
_CONNECTION: Final = (_SERVERS, "security.protocol", "sasl.", "ssl.")


class KafkaOffsetStore:
    """Owns the state of the offset topic. Called from tasks' threads."""

    def __init__(self, client: Mapping[str, Any], topic: LogTopic) -> None:
        self._lock = threading.Lock()
        self._state = OffsetState()
        self._log = TopicLog(client, topic, self._read)

    @property
    def topic(self) -> str:
        return self._log.topic.name

    def start(self) -> None:
        self._log.start()

    def stop(self) -> None:
        self._log.stop()

    def _read(self, entries: list[Entry], _: Positions) -> None:
        with self._lock:
            for key, value in entries:
                self._state.replay(key, value)

    def offsets(self, connector: str, partitions: Sequence[SourcePartition]) -> list[Any]:
        self._log.catch_up(ends_transactions=True)
        with self._lock:
            return [self._state.offset(connector, each) for each in partitions]

    def of_connector(self, connector: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        self._log.catch_up(ends_transactions=True)
        with self._lock:
            return self._state.of_connector(connector)

    def write(self, connector: str, entries: Entries, timeout_ms: int) -> None:
        self._log.write(self.records(connector, entries), timeout_ms)

    def records(self, connector: str, entries: Entries) -> list[OffsetRecord]:
        """Return the offset records, for a task that writes them in its transaction."""
        with self._lock:
            return [self._state.record(connector, *entry) for entry in entries]

    def committed(self, connector: str, entries: Entries, timeout_ms: int) -> None:
        """Note that a transaction has written entries."""


class ConnectorOffsets:
    """Owns a connector's own offset topic, between `start` and `stop`."""

    def __init__(self, own: KafkaOffsetStore, workers: OffsetStore) -> None:
        self._own = own
        self._workers = workers

    @property
    def topic(self) -> str:
        return self._own.topic

    def start(self) -> None:
        """Raises ConnectException."""
        self._own.start()

    def stop(self) -> None:
        self._own.stop()

    def offsets(self, connector: str, partitions: Sequence[SourcePartition]) -> list[Any]:
        own = self._own.offsets(connector, partitions)
        if all(each is not None for each in own):
            return own
        before = self._workers.offsets(connector, partitions)
        return [known if mine is None else mine for mine, known in zip(own, before, strict=True)]

    def of_connector(self, connector: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        own = self._own.of_connector(connector)
        mine = [partition for partition, _ in own]
        before = self._workers.of_connector(connector)
        return own + [each for each in before if each[0] not in mine]

    def write(self, connector: str, entries: Entries, timeout_ms: int) -> None:
        removed = [each for each in entries if each[1] is None]
        if removed:
            # First in the worker's topic, the fallback: otherwise a read would still find them.
            self._workers.write(connector, removed, timeout_ms)
        self._own.write(connector, entries, timeout_ms)
        self.committed(connector, [each for each in entries if each[1] is not None], timeout_ms)

    def records(self, connector: str, entries: Entries) -> list[OffsetRecord]:
        return self._own.records(connector, entries)

    def committed(self, connector: str, entries: Entries, timeout_ms: int) -> None:
        """Write entries to the worker's topic as well; a failure is logged, not raised."""
        try:
            self._workers.write(connector, entries, timeout_ms)
        except ConnectException as error:
            log.warning("worker's offsets lag behind connector=%s error=%s", connector, error)


def own_offsets(environment: Environment, config: Mapping[str, str]) -> ConnectorOffsets | None:
    """Return a connector's own store, not started, or None. `config` has variables resolved."""
    settings = environment.settings
    if _WORKERS not in settings.parsed:
        # A standalone worker keeps all offsets in one file.
        return None
    workers, name = settings[_WORKERS], (config.get(_SETTING) or "").strip()
    override = with_prefix(config, "producer.override.")
    is_elsewhere = override.get(_SERVERS) not in (None, settings.bootstrap_servers)
    if is_elsewhere and environment.is_exactly_once(config):
        name = name or workers
    elif name == workers:
        name = ""
    if not name:
        return None
    told = {**settings.client_of_tasks("producer"), **override}
    connection = {key: told[key] for key in told if key.startswith(_CONNECTION)}
    client = librdkafka_settings({**settings.client(), **connection})
    topic = LogTopic(
        name, settings["offset.storage.partitions"], settings["offset.storage.replication.factor"]
    )
    return ConnectorOffsets(KafkaOffsetStore(client, topic), environment.offsets)


@contextmanager
def offsets_of(environment: Environment, config: Mapping[str, str]) -> Iterator[OffsetStore]:
    """Open the offsets of a connector for the `with` block. Raises ConnectException."""
    own = own_offsets(environment, config)
    if own is None:
        yield environment.offsets
        return
    try:
        own.start()
        yield own
    finally:
        own.stop()


class OffsetsWhenAsked:
    """Opens a connector's offsets for each read: connectors read them seldom or never."""

    def __init__(self, environment: Environment, config: Mapping[str, str]) -> None:
        self._environment = environment
        self._config = config

    def offsets(self, connector: str, partitions: Sequence[SourcePartition]) -> list[Any]:
        with offsets_of(self._environment, self._config) as store:
            return store.offsets(connector, partitions)
