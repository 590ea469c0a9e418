"""Runs a preview in its own thread, with a time limit.

A connector's code may block for ever. Then the answer has the records that were seen so far, the
thread is left behind, and another preview may start. The number of threads that are left behind is
limited.
"""

import asyncio
import logging
import threading
from functools import partial
from typing import Any, Final

from connect.definitions import secrets
from connect.definitions.concealing import HIDDEN, Concealing
from connect.definitions.plugin_errors import concealed
from connect.definitions.validation import connector_class, definition_of
from connect.errors.tolerance import ErrorSettings
from connect.herder.names import RefusalError, bad_request
from connect.preview import shown
from connect.preview.limits import LIMIT_MS, Ended, Seen
from connect.preview.sink import SinkReading
from connect.preview.source import SourceReading
from connect.preview.way import Way
from connect.worker.client_settings import CONSUMER_DEFAULTS
from connect.worker.environment import Environment, filled
from connect.worker.offset_store import Reader
from connect.worker.tasks.thread import Caller
from millstream.connect.connectors import SourceConnector

log = logging.getLogger(__name__)

_AT_ONCE: Final = 2
_GRACE_MS: Final = 1_000
_LEFT_AT_MOST: Final = 16

Config = dict[str, str | None]


class Previews:
    """Owns the places of previews."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._places = threading.Semaphore(_AT_ONCE)
        self._left: list[_Preview] = []
        """Those that did not end in time."""

    async def preview(self, config: Config) -> dict[str, Any]:
        """Return what a valid configuration would do. Raises RefusalError when it must not run."""
        self._left = [each for each in self._left if each.is_alive()]
        if len(self._left) >= _LEFT_AT_MOST:
            raise RefusalError(
                429,
                f"{len(self._left)} previews do not end, because the code of their connectors "
                "waits for something: there are no more until one ends or the worker restarts",
            )
        if not self._places.acquire(blocking=False):
            raise RefusalError(429, f"{_AT_ONCE} previews are running: try again in a moment")
        try:
            thread = await asyncio.to_thread(_Preview, self._environment, config, self._places)
        except BaseException:
            self._places.release()
            raise
        thread.start()
        if not await asyncio.to_thread(thread.wait):
            self._left.append(thread)
        return thread.body()


class _Preview(threading.Thread):
    """One preview. Invariant: it has a place until it ends or is left behind."""

    def __init__(
        self, environment: Environment, config: Config, places: threading.Semaphore
    ) -> None:
        """Raises RefusalError for a source that reading changes."""
        super().__init__(name=f"preview-{config.get('name')}", daemon=True)
        self._environment = environment
        variables = environment.variables(config)
        self._config = filled(config, variables)
        secret = secrets.values(environment.plugins, self._config)
        self._concealing = Concealing(dict.fromkeys((*secret, *variables.values.values()), HIDDEN))
        self._places = places
        self._call = Caller()
        self._seen = Seen.begun(partial(shown.clean, self._concealing))
        with concealed(self._concealing, "the preview"):
            self._connector = connector_class(environment.plugins, self._config)()
            self._reading = self._reading_of()
        self._has_ended = threading.Event()
        self._has_place = threading.Lock()
        """Is taken by whoever gives the place back."""

    def _reading_of(self) -> SourceReading | SinkReading:
        name = self._config["name"]
        if isinstance(self._connector, SourceConnector):
            changed = self._connector.changed_by_reading(self._config)
            if changed is not None:
                raise bad_request(f"{type(self._connector).__name__} has no preview: {changed}")
            reader = Reader(self._environment.offsets, name)
            return SourceReading(self._connector, self._call, reader)
        told = {**CONSUMER_DEFAULTS, "client.id": "preview", "group.id": f"connect-{name}"}
        return SinkReading(self._environment.client("consumer", self._config, **told))

    def run(self) -> None:
        way: Way | None = None
        try:
            way = Way(self._environment, self._config, is_tolerant=self._is_tolerant())
            self._reading.read(self._config, way, self._seen)
        # The outermost edge of a preview: whatever its plugins raise is what there is to see.
        except BaseException as error:  # noqa: BLE001
            self._seen.error = shown.error(error, "CONNECTOR")
            self._seen.ended = Ended.ERROR
        finally:
            self._end(way)

    def _end(self, way: Way | None) -> None:
        try:
            if way is not None:
                way.close()
            self._call.close()
        # As above.
        except BaseException as error:  # noqa: BLE001
            trace = self._concealing.trace(error)
            log.error("preview did not end cleanly thread=%s\n%s", self.name, trace)
        finally:
            self._give_place_back()
            self._has_ended.set()

    def _give_place_back(self) -> None:
        if self._has_place.acquire(blocking=False):
            self._places.release()

    def _is_tolerant(self) -> bool:
        plugins = self._environment.plugins
        definition = definition_of(plugins, type(self._connector), self._config)
        return ErrorSettings.of(definition.parse(self._config, plugins.find)).is_tolerated

    def wait(self) -> bool:
        """Wait until it ends, or has had all the time it gets; returns whether it ended."""
        if self._has_ended.wait(LIMIT_MS / 1000):
            return True
        try:
            self._reading.interrupt()
        # What is called is the connector's own code.
        except Exception as error:  # noqa: BLE001
            trace = self._concealing.trace(error)
            log.error("preview could not be interrupted thread=%s\n%s", self.name, trace)
        if self._has_ended.wait(_GRACE_MS / 1000):
            return True
        log.warning("preview does not stop and is left behind thread=%s", self.name)
        self._give_place_back()
        return False

    def body(self) -> dict[str, Any]:
        """Return what was seen until now."""
        seen = self._seen
        is_source = isinstance(self._connector, SourceConnector)
        said = {
            "name": self._config["name"],
            "type": "source" if is_source else "sink",
            **dict(seen.facts),
            "records": list(seen.records),
            "ended": (seen.ended or Ended.TIME).value,
            **({"error": seen.error} if seen.error is not None else {}),
        }
        found: dict[str, Any] = seen.clean(said)
        return found
