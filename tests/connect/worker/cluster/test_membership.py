"""A worker in its group, against a coordinator that says what a test wants."""

import asyncio
from collections.abc import Callable, Mapping

import pytest

from common.kafka.group_member import Joined
from connect.group.protocol import VERSIONS, GroupAssignment, Share, encode_assignment
from connect.herder.herder import Herder
from connect.herder.names import TaskId
from connect.worker.cluster import membership
from connect.worker.cluster.membership import Membership
from connect.worker.settings import WorkerSettings
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

    assert asyncio.run(asyncio.wait_for(live(), 10)) == 1
