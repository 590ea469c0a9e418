"""The thread of one connector: it starts it, makes task configurations when asked, stops it."""

import logging
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from connect.definitions.concealing import NOTHING, Concealing
from connect.definitions.validation import connector_class
from connect.local_files import require_files
from connect.worker.environment import Environment, filled
from connect.worker.offset_store import Reader
from connect.worker.offsets.kafka_store import OffsetsWhenAsked
from connect.worker.tasks.thread import Caller
from millstream.connect.config.types import class_name
from millstream.connect.connectors import Connector, SinkConnector
from millstream.connect.errors import ConnectException

log = logging.getLogger(__name__)

Config = Mapping[str, str | None]


class Listener(Protocol):
    """Receives a connector's events, from the connector's thread or one that it started."""

    def connector_began(self, thread: "ConnectorThread", version: str) -> None: ...

    def configs_made(
        self, thread: "ConnectorThread", configs: Sequence[Mapping[str, str]]
    ) -> None: ...

    def connector_noted(self, thread: "ConnectorThread", note: str | None) -> None: ...

    def connector_ended(self, thread: "ConnectorThread", trace: str | None) -> None: ...

    def reconfigure(self, thread: "ConnectorThread") -> None: ...


class _Context:
    """The worker's side of `ConnectorContext`."""

    def __init__(self, thread: "ConnectorThread", reader: Reader) -> None:
        self._thread = thread
        self.offset_storage_reader = reader

    def request_task_reconfiguration(self) -> None:
        self._thread.tell_reconfigure()

    def raise_error(self, error: Exception) -> None:
        self._thread.fail(error)


class ConnectorThread(threading.Thread):
    """Owns a connector from start to end. Reports its end exactly once, unless left behind."""

    def __init__(
        self, name: str, config: Config, environment: Environment, listener: Listener
    ) -> None:
        super().__init__(name=f"connector-{name}", daemon=True)
        self.connector = name
        self.is_left = False
        self.is_stopping = False
        self._config = config
        self._environment = environment
        self._listener = listener
        self._asked: queue.SimpleQueue[Exception | Config | None] = queue.SimpleQueue()
        """Requests to the thread: fail (an exception), make task configurations, stop (None)."""
        self._call = Caller()
        self._note: str | None = None
        self._concealing = NOTHING

    # --- called from outside ---

    def make_task_configs(self, config: Config) -> None:
        self._asked.put(config)

    def ask_to_stop(self) -> None:
        self.is_stopping = True
        self._asked.put(None)

    def fail(self, error: Exception) -> None:
        self._asked.put(error)

    def leave(self) -> None:
        log.warning("connector does not stop and is left behind connector=%s", self.connector)
        self.is_left = True

    def tell_reconfigure(self) -> None:
        if not self.is_left:
            self._listener.reconfigure(self)

    # --- the thread ---

    def run(self) -> None:
        trace: str | None = None
        connector: Connector | None = None
        try:
            variables = self._environment.variables(self._config)
            self._concealing = self._environment.concealing(self._config, variables)
            config = filled(self._config, variables)
            require_files(config)
            made = connector_class(self._environment.plugins, config)()
            offsets = OffsetsWhenAsked(self._environment, config)
            made.context = _Context(self, Reader(offsets, self.connector))
            self._call(made.start, config)
            connector = made
            self._tell(self._listener.connector_began, type(connector).version())
            self._take_note(connector)
            self._serve(connector)
        # The outermost edge of a connector: an exception ends this connector only.
        except BaseException as error:  # noqa: BLE001
            if not self.is_stopping:
                trace = self._concealing.trace(error)
                log.error("connector failed connector=%s\n%s", self.connector, trace)
        finally:
            self._end(connector)
        self._tell(self._listener.connector_ended, trace)

    def _serve(self, connector: Connector) -> None:
        while (asked := self._asked.get()) is not None:
            if isinstance(asked, Exception):
                raise asked
            variables = self._environment.variables(asked)
            config = filled(asked, variables)
            # A value that the connector copied under another name is a variable again, too.
            written = Concealing(variables.written_for)
            made = [written.config(each, config) for each in self._made(connector, config)]
            self._tell(self._listener.configs_made, made)
            self._take_note(connector)

    def _take_note(self, connector: Connector) -> None:
        """Report the connector's note when it has changed."""
        note = connector.note()
        if note is not None:
            note = self._concealing.text(note)
        if note != self._note:
            self._note = note
            self._tell(self._listener.connector_noted, note)

    def _made(self, connector: Connector, config: Mapping[str, str]) -> list[dict[str, str]]:
        tasks_max = int(config.get("tasks.max") or 1)
        configs = self._call(connector.task_configs, tasks_max)
        if len(configs) > tasks_max and (config.get("tasks.max.enforce") or "").lower() != "false":
            raise ConnectException(
                f"The connector {self.connector} has generated {len(configs)} tasks, which is "
                f"greater than {tasks_max}, the maximum number of tasks it is configured to "
                "create. With 'tasks.max.enforce' set to 'false' that is let pass."
            )
        added = {"task.class": class_name(connector.task_class())}
        if isinstance(connector, SinkConnector):
            topics = ("topics", "topics.regex")
            added |= {name: config[name] for name in topics if config.get(name)}
        return [{**each, **added} for each in configs]

    def _end(self, connector: Connector | None) -> None:
        try:
            if connector is not None:
                self._call(connector.stop)
            self._call.close()
        # As above.
        except BaseException as error:  # noqa: BLE001
            trace = self._concealing.trace(error)
            log.error("connector did not end cleanly connector=%s\n%s", self.connector, trace)

    def _tell(self, of: Callable[..., None], *what: Any) -> None:
        if not self.is_left:
            of(self, *what)
