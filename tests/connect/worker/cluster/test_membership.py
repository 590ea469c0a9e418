"""A worker in its group, against a coordinator that says what a test wants."""

import asyncio
from collections.abc import Callable, Mapping

import pytest

from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.group_member import Joined
from connect.group.protocol import VERSIONS, GroupAssignment, Share, encode_assignment
from connect.herder.herder import Herder
from connect.herder.names import TaskId
from connect.worker.cluster import membership
from connect.worker.cluster.membership import Membership
from connect.worker.settings import WorkerSettings
from millstream.connect.errors import ConnectException
from tests.lib.connect_worker import WORKER_SETTINGS

REVOKED = Share(tasks=frozenset({TaskId("source", 0)}))
GROUP = {
    "group.id": "workers",
    "config.storage.topic": "configs",
    "offset.storage.topic": "offsets",
    "status.storage.topic": "status",
}


class SpokenCoordinator:
    """Takes the place of a GroupClient: the first assignment revokes and has a delay of 1 ms."""

    def __init__(self, settings: WorkerSettings) -> None:
        self.member_id, self.generation = "me", 1
        self.heartbeat_count = 0
        self.joined_again = asyncio.Event()

    async def connect(self) -> None:
        """There is nothing to connect to."""

    async def join(self, metadata: Callable[[], Mapping[str, bytes]]) -> Joined:
        if self.heartbeat_count:
            self.joined_again.set()
            await asyncio.Event().wait()
        return Joined("sessioned", False, "leader", {})

    async def sync(self, assignments: Mapping[str, bytes]) -> bytes:
        told = GroupAssignment("leader", "http://leader", 1, revoked=REVOKED, delay_ms=1)
        return encode_assignment(told, VERSIONS["sessioned"])

    async def heartbeat(self) -> bool:
        self.heartbeat_count += 1
        await asyncio.sleep(0)
        return False


class SlowShell:
    """A worker whose revoked task takes its time to stop."""

    def __init__(self) -> None:
        self.herder = Herder("me")
        self.has_stopped = asyncio.Event()

    def pump(self) -> None:
        """There is nothing to do."""

    async def wait_until_stopped(self, share: Share) -> None:
        assert share == REVOKED
        await self.has_stopped.wait()

    async def catch_up(self) -> int:
        return 1


def test_who_waits_for_what_is_revoked_does_not_ask_without_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(membership, "GroupClient", SpokenCoordinator)
    settings = WorkerSettings.of({**WORKER_SETTINGS, **GROUP}, is_distributed=True)

    async def live() -> int:
        shell = SlowShell()
        member = Membership(settings, shell, "http://me")
        coordinator = member._client
        assert isinstance(coordinator, SpokenCoordinator)
        life = asyncio.create_task(member.run())
        await member.wait_until_member()
        await asyncio.sleep(0.05)  # The delay is long over, the next heartbeat far away.
        asked_meanwhile = coordinator.heartbeat_count
        shell.has_stopped.set()
        await coordinator.joined_again.wait()
        life.cancel()
        return asked_meanwhile

    assert asyncio.run(asyncio.wait_for(live(), 60)) == 1


class Clock:
    """Milliseconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000

    def __call__(self) -> int:
        return self.now_ms


TASK = Share(tasks=frozenset({TaskId("source", 1)}))
SESSION_MS = 10_000


class RestlessCoordinator(SpokenCoordinator):
    """Assigns a task; the test decides how the second rebalance ends."""

    def __init__(self, settings: WorkerSettings) -> None:
        super().__init__(settings)
        self.sync_count = 0
        self.is_third_join = asyncio.Event()
        self.end_of_sync: Callable[[], None] = lambda: None

    async def join(self, metadata: Callable[[], Mapping[str, bytes]]) -> Joined:
        if self.sync_count == 2:
            self.is_third_join.set()
            await asyncio.Event().wait()
        return Joined("sessioned", False, "leader", {})

    async def sync(self, assignments: Mapping[str, bytes]) -> bytes:
        self.sync_count += 1
        if self.sync_count == 2:
            self.end_of_sync()
        said = GroupAssignment("leader", "http://leader", 1, assigned=TASK)
        return encode_assignment(said, VERSIONS["sessioned"])

    async def heartbeat(self) -> bool:
        return True


class TopicShell(SlowShell):
    """A worker whose tasks end at once, and whose topic can be out of reach."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.stopped: list[Share] = []
        self.is_topic_away = False
        self._clock = clock

    async def wait_until_stopped(self, share: Share) -> None:
        if share != Share():
            self.stopped.append(share)

    async def catch_up(self) -> int:
        if self.is_topic_away:
            self._clock.now_ms += SESSION_MS
            await asyncio.Event().wait()
        await asyncio.sleep(0.001)
        return 1


def _member(
    monkeypatch: pytest.MonkeyPatch, shell: TopicShell, clock: Clock
) -> tuple[Membership, RestlessCoordinator]:
    monkeypatch.setattr(membership, "GroupClient", RestlessCoordinator)
    monkeypatch.setattr(membership, "now_ms", clock)
    monkeypatch.setattr(membership, "_RETRY_SECONDS", 0)
    told = {**WORKER_SETTINGS, **GROUP, "session.timeout.ms": str(SESSION_MS)}
    member = Membership(WorkerSettings.of(told, is_distributed=True), shell, "http://me")
    assert isinstance(member._client, RestlessCoordinator)
    return member, member._client


def test_a_rebalance_longer_than_a_session_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coordinator waits for the session of a member that died in the rebalance."""

    async def live() -> list[Share]:
        clock = Clock()
        shell = TopicShell(clock)
        member, coordinator = _member(monkeypatch, shell, clock)

        def end() -> None:
            clock.now_ms += SESSION_MS + 1
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

        coordinator.end_of_sync = end
        life = asyncio.create_task(member.run())
        await coordinator.is_third_join.wait()
        life.cancel()
        return shell.stopped

    assert asyncio.run(asyncio.wait_for(live(), 60)) == []


def test_work_ends_with_the_session_while_the_topic_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def live() -> list[Share]:
        clock = Clock()
        shell = TopicShell(clock)
        member, coordinator = _member(monkeypatch, shell, clock)

        def end() -> None:
            shell.is_topic_away = True
            clock.now_ms += SESSION_MS - 5
            raise ConnectException("the coordinator is not reached")

        coordinator.end_of_sync = end
        life = asyncio.create_task(member.run())
        while not shell.stopped:
            await asyncio.sleep(0)
        life.cancel()
        return shell.stopped

    assert asyncio.run(asyncio.wait_for(live(), 60)) == [TASK]
