"""OpenTelemetry spans of requests that take longer than `slow.request.trace.ms`.

A request counts from its turn to its answer, with what it waits for: followers, a coordinator.
Those that wait because their clients ask for it (Fetch for records, JoinGroup for members) count
only if they are answered at once. While the setting is -1 nothing of this is called.
"""

from collections.abc import Callable
from struct import Struct
from types import GeneratorType
from typing import Final

from broker.config.sources import invalid
from broker.server.network.connection import Connection
from broker.server.network.dispatch import OnFrame
from broker.server.network.later import Making
from broker.server.network.sending import Part
from common.kafka.protocol.api_keys import ApiKey
from common.process.traces import EXPORTER_VARIABLE, Recorder, make_recorder

SETTING: Final = "slow.request.trace.ms"
WAIT_ON_PURPOSE: Final = frozenset(
    {ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.SHARE_FETCH}
)
_HEADER: Final = Struct(">hhih")
_MOST_OF_NAME: Final = 256
_NAMES: Final = {int(key): key.name.title().replace("_", "") for key in ApiKey}


class SlowRequests:
    """Owns the recorder of the spans; `watch` stands before the dispatcher."""

    def __init__(self, limit_seconds: float, now: Callable[[], float], recorder: Recorder) -> None:
        self._limit_seconds = limit_seconds
        self._now = now
        self._recorder = recorder

    def watch(
        self, answer_frame: OnFrame, connection: Connection, frame: memoryview
    ) -> list[Part] | Making | None:
        """Return the answer of `answer_frame`."""
        began = self._now()
        # A copy: the frame's memory is used again while the answer is made.
        head = bytes(frame[: _HEADER.size + _MOST_OF_NAME])
        answer = answer_frame(connection, frame)
        if isinstance(answer, GeneratorType):
            return self._watched(answer, connection, head, began)
        self._note(connection, head, began)
        return answer

    def _watched(self, making: Making, connection: Connection, head: bytes, began: float) -> Making:
        parts = yield from making
        if int.from_bytes(head[:2]) not in WAIT_ON_PURPOSE:
            self._note(connection, head, began)
        return parts

    def _note(self, connection: Connection, head: bytes, began: float) -> None:
        took = self._now() - began
        if took < self._limit_seconds or len(head) < _HEADER.size:
            return
        api_key, version, _, size = _HEADER.unpack_from(head)
        if api_key not in _NAMES:
            return
        client_id = head[_HEADER.size :][: max(0, size)].decode(errors="replace")
        self._recorder.tell_served(
            _NAMES[api_key],
            took,
            {
                "messaging.system": "kafka",
                "messaging.client.id": client_id,
                "messaging.kafka.api.version": version,
                "network.peer.address": connection.peer.host,
            },
        )

    def close(self) -> None:
        """Send the spans that are left."""
        self._recorder.shut_down()


def slow_requests(limit_ms: int, node_id: int, now: Callable[[], float]) -> SlowRequests | None:
    """Return what watches the requests of a node; None if the limit is negative.

    Raise KafkaError if the environment names no exporter.
    """
    if limit_ms < 0:
        return None
    try:
        recorder = make_recorder(f"broker-{node_id}")
    except ImportError:
        raise invalid(f"{SETTING} needs the extra millstream[tracing]") from None
    if recorder is None:
        raise invalid(f"{SETTING} needs {EXPORTER_VARIABLE}=otlp, or console, in the environment")
    return SlowRequests(limit_ms / 1000, now, recorder)
