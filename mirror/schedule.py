"""Runs a connector's repeated actions in their own thread."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from confluent_kafka import KafkaException

from common.process.clock import now_ms
from connect.definitions.concealing import places
from millstream.connect import ConnectException

log = logging.getLogger(__name__)

_RETRY_MS: Final = 1_000
_LONGEST_RETRY_MS: Final = 30_000


@dataclass(slots=True)
class _Duty:
    what: str
    interval_ms: int | None
    """None: run once, retried until it succeeds."""
    action: Callable[[], None]
    due_ms: int
    failures: int = 0


class Schedule:
    """Owns the thread. An action that fails is logged and tried again: 1 s, 2 s, ... 30 s."""

    def __init__(self, name: str) -> None:
        self._duties: list[_Duty] = []
        self._stopping = threading.Event()
        self._is_done = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"schedule-{name}", daemon=True)
        self._name = name

    def once(self, what: str, action: Callable[[], None]) -> None:
        """Run an action until it succeeds. Actions run in the order in which they were added."""
        self._duties.append(_Duty(what, None, action, now_ms()))

    def every(
        self, what: str, seconds: int | None, action: Callable[[], None], *, is_delayed: bool
    ) -> None:
        """Run an action every so many seconds; never for None."""
        if seconds is not None:
            interval_ms = max(1, seconds) * 1000
            due_ms = now_ms() + (interval_ms if is_delayed else 0)
            self._duties.append(_Duty(what, interval_ms, action, due_ms))

    def start(self, wait_seconds: float) -> None:
        """Start; return when every due action was tried once, or after `wait_seconds`."""
        self._thread.start()
        self._is_done.wait(wait_seconds)

    def stop(self, wait_seconds: float = 5.0) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(wait_seconds)

    def _run(self) -> None:
        while not self._stopping.is_set():
            for duty in list(self._duties):
                if duty.due_ms <= now_ms() and not self._stopping.is_set():
                    self._do(duty)
            self._is_done.set()
            wait_ms = min((each.due_ms for each in self._duties), default=now_ms() + _RETRY_MS)
            self._stopping.wait(max(0, wait_ms - now_ms()) / 1000)

    def _do(self, duty: _Duty) -> None:
        try:
            duty.action()
        # The outermost edge of the thread: the cluster may be reachable next time.
        except Exception as error:  # noqa: BLE001
            is_known = isinstance(error, ConnectException | KafkaException)
            # What a mistake says may show a setting's value; its places do not.
            told = f"error={error}" if is_known else f"\n{places(error)}"
            log.warning("%s failed schedule=%s %s", duty.what, self._name, told)
            retry_ms = min(_RETRY_MS << min(duty.failures, 10), _LONGEST_RETRY_MS)
            duty.failures += 1
            duty.due_ms = now_ms() + min(retry_ms, duty.interval_ms or retry_ms)
            return
        duty.failures = 0
        if duty.interval_ms is None:
            self._duties.remove(duty)
        else:
            duty.due_ms = now_ms() + duty.interval_ms
