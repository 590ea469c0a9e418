"""The replies and effects of one shard that wait for the commit of its records.

The state of a shard runs ahead of the commit; its replies do not. A reply is sent when the last
record that the shard wrote before it is committed, in the order of the outputs, so that no client
sees state that may be lost. A reply that waits longer than the shard's time-out becomes a refusal,
although the records may still be committed. Effects have no deadline: they begin when the records
are committed, or never.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from broker.coordinator.output import Output, Reply
from broker.server.replication.partitions import Partition
from common.kafka.errors import ErrorCode


class Outlets(NamedTuple):
    """The receivers of a shard's replies, refusals and effects."""

    deliver: Callable[[Reply], None]
    refuse: Callable[[Reply, ErrorCode], Reply]
    begin: Callable[[object], None]
    """An effect of a committed output."""


class ShardCommits:
    """Invariant: `_open` holds the commits that are awaited, by ascending offset."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        partition: Partition,
        timeout_ms: int,
        outlets: Outlets,
        *,
        on_awaited: Callable[[Partition], None],
    ) -> None:
        self._loop = loop
        self._partition = partition
        self._timeout_ms = timeout_ms
        self.outlets = outlets
        self._on_awaited = on_awaited
        """Called when a reply waits for the commit of records that were appended without one."""
        self._open: deque[_Commit] = deque()

    def note_append(self) -> None:
        """Hold the replies that follow until all records in the log are committed."""
        log, leader = self._partition.log, self._partition.leader
        if leader is None or log.high_watermark >= log.log_end_offset:
            return
        commit = _Commit(self)
        self.start_timer(commit)
        self._open.append(commit)
        leader.waits.add(log.log_end_offset, commit)

    def start_timer(self, commit: "_Commit") -> None:
        """Start the time-out of a commit."""
        commit.timer = self._loop.call_later(self._timeout_ms / 1000, commit.on_deadline)

    def tell(self, output: Output) -> None:
        """Send the replies of an output, at once or when its records are committed."""
        if self._open:
            self._open[-1].replies += output.replies
            self._open[-1].effects += output.effects
            if output.replies or output.effects:
                self._on_awaited(self._partition)
            return
        for reply in output.replies:
            self.outlets.deliver(reply)
        for effect in output.effects:
            self.outlets.begin(effect)

    def finish(self, commit: "_Commit", code: ErrorCode | None) -> None:
        """Send the replies that waited for a commit, or refuse them with a code."""
        commit.timer.cancel()
        if commit in self._open:
            self._open.remove(commit)
        commit.tell(code)
        if code is None:
            for effect in commit.effects:
                self.outlets.begin(effect)

    def refuse_all(self, code: ErrorCode) -> None:
        """Refuse all replies that wait: the shard is unloaded."""
        while self._open:
            self.finish(self._open[0], code)


class _Commit:
    """The end of one append, and the outputs that wait for its commit."""

    __slots__ = ("_commits", "effects", "replies", "timer")

    timer: asyncio.TimerHandle

    def __init__(self, commits: ShardCommits) -> None:
        self._commits = commits
        self.replies: list[Reply] = []
        self.effects: list[object] = []

    def on_committed(self, error_code: ErrorCode) -> None:
        # The records stay committed even if fewer replicas are left than min.insync.replicas.
        self._commits.finish(self, None)

    def on_sent_away(self) -> None:
        self._commits.finish(self, ErrorCode.NOT_COORDINATOR)

    def on_deadline(self) -> None:
        self.tell(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self._commits.start_timer(self)

    def tell(self, code: ErrorCode | None) -> None:
        replies, self.replies = self.replies, []
        outlets = self._commits.outlets
        for reply in replies:
            outlets.deliver(reply if code is None else outlets.refuse(reply, code))
