"""A node under test that starts anew within its process, with the files that it had before."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from broker.server.node import Node, Stop
from broker.server.storage.saved_state import FOLDER, SavedState
from broker.server.testing import testing as of_tests
from common.kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.broker.server.test_node import config_of
from tests.lib.quorum_nodes import run

HOUR_MS = 3_600_000


class UnderTest:
    """A node that runs, and its saved state."""

    def __init__(self, folder: Path) -> None:
        config = config_of(folder)
        testing = of_tests.Testing(config)
        self.clock = testing.clock
        self.node = Node(config, cluster_id=None, testing=testing)
        self.stop = Stop()
        self.saved = SavedState([str(folder)], self.clock)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["UnderTest"]:
        await self.node.open(self.stop)
        async with asyncio.TaskGroup() as tasks:
            self.node.start_background(tasks)
            yield self
            await self.node.stop()

    async def save(self) -> None:
        await self.node.restart(self.stop, self.saved.save, is_clean=True, new_ports=False)

    async def bring_back(self, *, new_ports: bool = False) -> None:
        back = self.saved.bring_back
        await self.node.restart(self.stop, back, is_clean=False, new_ports=new_ports)

    @property
    def quorum(self) -> Any:
        return self.node._quorum

    @property
    def topics(self) -> set[str]:
        return set(self.quorum.image.topics.by_name)

    def create(self, name: str) -> None:
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        request = CreateTopicsRequest(topics=[topic])
        self.quorum.channel.ask(request, 7, lambda answer: None, timeout_ms=1_000)

    def port(self) -> int:
        return int(self.node.ready_line().rpartition(":")[2])


def scenario(folder: Path, steps: Callable[[UnderTest], Any]) -> UnderTest:
    played: list[UnderTest] = []

    async def play() -> None:
        tested = UnderTest(folder)
        played.append(tested)
        async with tested.running():
            await steps(tested)

    run(play)
    return played[0]


def test_a_node_is_brought_back_to_what_it_was_with_its_port_and_its_time(tmp_path: Path) -> None:
    async def steps(tested: UnderTest) -> None:
        assert tested.node.is_alone
        port = tested.port()
        tested.clock.advance(HOUR_MS)
        tested.create("kept")
        await tested.save()
        assert tested.topics == {"kept"}
        for _ in range(2):
            tested.create("of a test".replace(" ", "-"))
            tested.clock.advance(HOUR_MS)
            await tested.bring_back()
            assert tested.topics == {"kept"}
            assert tested.clock.ahead_ms == HOUR_MS
        assert tested.port() == port

    tested = scenario(tmp_path, steps)
    assert tested.stop.failure is None
    assert (tmp_path / FOLDER).is_dir()


def test_a_node_may_get_new_ports_so_that_old_clients_do_not_find_it(tmp_path: Path) -> None:
    async def steps(tested: UnderTest) -> None:
        await tested.save()
        ports = [tested.port()]
        for new_ports in (True, False):
            await tested.bring_back(new_ports=new_ports)
            ports.append(tested.port())
        assert ports[0] != ports[1] == ports[2]

    scenario(tmp_path, steps)


def test_a_timer_of_before_is_not_called_after_the_return(tmp_path: Path) -> None:
    async def steps(tested: UnderTest) -> None:
        called: list[str] = []
        await tested.save()
        tested.clock.call_later(HOUR_MS, called.append, "of before")
        await tested.bring_back()
        tested.clock.advance(2 * HOUR_MS)
        await asyncio.sleep(0)
        assert called == []

    scenario(tmp_path, steps)


def test_a_stop_comes_after_the_restart_that_is_under_way(tmp_path: Path) -> None:
    async def steps(tested: UnderTest) -> None:
        restarting = asyncio.ensure_future(tested.save())
        while tested.node.is_ready:
            await asyncio.sleep(0)
        restarting.cancel()  # The one who asked is gone; the restart goes on.
        tested.stop.event.set()

    tested = scenario(tmp_path, steps)
    assert tested.saved.is_there
    assert tested.stop.failure is None


def test_a_node_that_cannot_start_again_stops_and_says_why(tmp_path: Path) -> None:
    def fail() -> None:
        raise OSError("the disk is full")

    async def steps(tested: UnderTest) -> None:
        work = partial(tested.node.restart, tested.stop, fail, is_clean=True, new_ports=False)
        await work()
        assert tested.stop.failure == "cannot start again: the disk is full"

    scenario(tmp_path, steps)
