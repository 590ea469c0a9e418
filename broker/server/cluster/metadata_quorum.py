"""The metadata quorum as the parts of a broker see it: the committed metadata, and a channel.

`quorum.Quorum` and its channel implement both protocols; a test has its own implementation.

The controller answers when a change is committed; this node applies it a moment later. A client
that gets its answer from this node finds the change on this node (`MetadataWaits`).
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from broker.metadata.features import KRAFT_VERSION
from broker.metadata.image import MetadataImage
from broker.server.network.later import Later, happened
from common.kafka.protocol.message import Message


class ClusterMetadata(Protocol):
    """The metadata of the cluster, as far as this node knows it to be committed."""

    @property
    def cluster_id(self) -> str:
        """The id of this cluster."""

    @property
    def image(self) -> MetadataImage:
        """The committed metadata that is applied here; each read may return another object."""

    @property
    def applied_offset(self) -> int:
        """The offset below which the metadata log is applied."""

    @property
    def leader_id(self) -> int:
        """The id of the node whose controller is active, -1 when none is known."""

    @property
    def kraft_version(self) -> int:
        """The level of `kraft.version`, which is in the Raft log and not in the image."""


def finalized_features(metadata: ClusterMetadata) -> list[tuple[str, int]]:
    """Return the finalized levels of the cluster, by name; `kraft.version` from level 1 on."""
    levels = dict(metadata.image.features)
    if metadata.kraft_version:
        levels[KRAFT_VERSION] = metadata.kraft_version
    return sorted(levels.items())


class AskController(Protocol):
    """Sends requests to the active controller, in this process or on another node."""

    def __call__(
        self,
        request: Message,
        api_version: int,
        on_response: Callable[[Message], None],
        *,
        timeout_ms: int,
        is_sent_once: bool = False,
    ) -> None:
        """Call `on_response` with the answer, or with a refusal when the time is over.

        With `is_sent_once` a lost connection is a refusal too: the request may be carried out.
        """


class MetadataWaits:
    """Owns the answers that wait for changes of the metadata."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[_Wait, None] = {}

    def until(self, is_so: Callable[[], bool], *, timeout_ms: int) -> Later:
        """Return a Later that is done when `is_so` returns True, or when the time is over."""
        if is_so():
            return happened(None)
        wait = _Wait(is_so)
        wait.timer = self._loop.call_later(timeout_ms / 1000, self._end, wait)
        self._waiting[wait] = None
        return wait

    def look(self) -> None:
        """Send the answers that need not wait longer, after a change."""
        for wait in [wait for wait in self._waiting if wait.is_so()]:
            self._end(wait)

    def _end(self, wait: "_Wait") -> None:
        if wait in self._waiting:
            del self._waiting[wait]
            assert wait.timer is not None
            wait.timer.cancel()
            wait.done()


class _Wait(Later):
    __slots__ = ("is_so", "timer")

    def __init__(self, is_so: Callable[[], bool]) -> None:
        super().__init__()
        self.is_so = is_so
        self.timer: asyncio.TimerHandle | None = None
