"""Reads the first records of a source: its connector and one task are started, polled and stopped.

The task reads the offsets stored under the connector's name, so that it continues at that
connector's position. The preview stores no offsets.
"""

from collections.abc import Mapping
from typing import Any, Final

from common.process.clock import wait
from connect.preview import shown
from connect.preview.limits import Ended, Seen
from connect.preview.way import Way
from connect.worker.offset_store import Reader
from connect.worker.tasks.boundaries import ConnectorBoundary, boundary_of
from connect.worker.tasks.thread import Caller
from millstream.connect.connectors import SourceConnector, SourceTask
from millstream.connect.errors import RetriableException

_IDLE_SECONDS: Final = 0.02


class _Context:
    """What the connector sees of the worker; that it wants other tasks is of no interest here."""

    def __init__(self, seen: Seen, reader: Reader) -> None:
        self._seen = seen
        self.offset_storage_reader = reader

    def request_task_reconfiguration(self) -> None:
        """Nothing: the first task is looked at, as it is."""

    def raise_error(self, error: Exception) -> None:
        self._seen.error = shown.error(error, "CONNECTOR")
        self._seen.ended = Ended.ERROR


class _TaskContext:
    def __init__(
        self, configs: Mapping[str, str], reader: Reader, transactions: ConnectorBoundary | None
    ) -> None:
        self.configs = configs
        self.offset_storage_reader = reader
        self.transaction_context = transactions
        """What it says of transactions is of no interest: nothing is written."""


class SourceReading:
    """Owns the connector and the task. All but `interrupt` runs in the preview's thread."""

    def __init__(self, connector: SourceConnector, call: Caller, reader: Reader) -> None:
        self._connector = connector
        self._call = call
        self._reader = reader
        self._task: SourceTask | None = None

    def read(self, config: dict[str, str], way: Way, seen: Seen) -> None:
        """Raises whatever the connector or its task raise."""
        self._connector.context = _Context(seen, self._reader)
        self._call(self._connector.start, config)
        try:
            self._read(config, way, seen)
        finally:
            self._call(self._connector.stop)

    def _read(self, config: dict[str, str], way: Way, seen: Seen) -> None:
        configs = self._call(self._connector.task_configs, int(config.get("tasks.max") or 1))
        seen.facts["tasks"] = len(configs)
        if not configs:
            seen.ended = Ended.END
            return
        made: Any = self._connector.task_class()()
        boundary = boundary_of(config, flush_interval_ms=0)
        transactions = boundary if isinstance(boundary, ConnectorBoundary) else None
        made.context = _TaskContext(configs[0], self._reader, transactions)
        self._task = made
        try:
            self._call(made.start, dict(configs[0]))
            seen.waits()
            self._poll(made, way, seen)
        finally:
            self._stop()

    def _poll(self, task: SourceTask, way: Way, seen: Seen) -> None:
        while seen.goes_on():
            try:
                records = self._call(task.poll) or ()
            except RetriableException as error:
                seen.facts["retried"] = shown.error(error, "TASK_POLL")
                records = ()
            is_empty = True
            for record in records:
                is_empty = False
                if seen.ended is not None:
                    break
                seen.add(way.of_source(record))
            if is_empty:
                wait(_IDLE_SECONDS)

    def _stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            self._call(task.stop)

    def interrupt(self) -> None:
        """Have a `poll` that waits come back."""
        task, self._task = self._task, None
        if task is not None:
            self._call.from_outside(task.stop)
