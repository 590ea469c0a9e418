"""How a node stops: with the controller's word, without it, and when it has failed."""

import asyncio
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from broker.config.broker_config import BrokerConfig
from broker.server.cluster.lifecycle import BrokerState
from broker.server.node import FAREWELL_SECONDS, Node, Stop
from tests.lib.quorum_nodes import run

PATIENCE_S = 5


def config_of(folder: Path, voters: str = "") -> BrokerConfig:
    return BrokerConfig.from_settings(
        {
            "log.dir": str(folder),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "controller.quorum.voters": voters,
        }
    )


def test_a_node_that_has_failed_stops_at_once(tmp_path: Path, caplog: Any) -> None:
    async def scenario() -> None:
        node, stop = Node(config_of(tmp_path), cluster_id=None), Stop()
        await node.open(stop)
        quorum = node._quorum
        assert quorum is not None

        def fail(now_ms: int) -> None:
            raise AssertionError("a bug")

        quorum.node.tick = fail  # type: ignore[method-assign, assignment]
        quorum.raft.tick()
        assert stop.failure == "the metadata log failed: AssertionError('a bug')"
        await asyncio.wait_for(node.stop(), PATIENCE_S)
        assert "stopping without the controller" not in caplog.text

    run(scenario)


def test_a_node_stops_with_the_word_of_its_own_controller(tmp_path: Path, caplog: Any) -> None:
    async def scenario() -> None:
        node = Node(config_of(tmp_path), cluster_id=None)
        await node.open(Stop())
        await node.stop()

    with caplog.at_level(logging.INFO):
        run(scenario)
    assert "stopping without the controller" not in caplog.text
    assert "stopped" in caplog.text


class SlowController:
    """A broker whose controller has a lot to do before it lets go, or does nothing at all."""

    def __init__(self, step_count: int) -> None:
        self.steps_left = step_count
        self.other = SimpleNamespace(is_active=False)
        self.metadata = SimpleNamespace(
            leader_id=1,
            has_stopped=False,
            applied_offset=7,
            image=SimpleNamespace(brokers={2: self.other}),
        )
        self.lifecycle = SimpleNamespace(
            state=BrokerState.RUNNING, stop=self.begin, end=lambda: None
        )
        self.on_done: Any = None

    def begin(self) -> None:
        asyncio.get_running_loop().call_later(0.03, self.do_step)

    def do_step(self) -> None:
        self.steps_left -= 1
        self.metadata.applied_offset += 1
        if self.steps_left:
            self.begin()
        else:
            self.lifecycle.state = BrokerState.SHUTTING_DOWN
            self.on_done()


def leave(node: Node, broker: SlowController) -> BrokerState:
    async def scenario() -> None:
        broker.on_done = node._state_changed.set
        await node._leave(broker)  # type: ignore[arg-type]

    run(scenario)
    return BrokerState(broker.lifecycle.state)


def test_a_controller_that_is_at_it_is_waited_for(tmp_path: Path, monkeypatch: Any) -> None:
    # With 4,300 partitions it takes seconds to move them all.
    monkeypatch.setattr("broker.server.node.NEAR_CONTROLLER_SECONDS", 0.1)
    node = Node(config_of(tmp_path), cluster_id=None)
    assert leave(node, SlowController(step_count=12)) == BrokerState.SHUTTING_DOWN


@pytest.mark.parametrize("others_are_alive", [True, False])
def test_clients_are_told_who_leads_now_if_there_is_somebody(
    tmp_path: Path, monkeypatch: Any, others_are_alive: bool
) -> None:
    slept = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("broker.server.node.asyncio.sleep", sleep)
    controller = SlowController(step_count=1)
    controller.other.is_active = others_are_alive
    leave(Node(config_of(tmp_path), cluster_id=None), controller)
    assert slept == [FAREWELL_SECONDS] * others_are_alive


def test_one_that_needs_nobody_else_is_waited_for_as_long_as_one_elsewhere(
    tmp_path: Path, monkeypatch: Any
) -> None:
    # Its disk or this machine is slow: no majority is missing.
    monkeypatch.setattr("broker.server.node.NEAR_CONTROLLER_SECONDS", 0.001)
    node = Node(config_of(tmp_path), cluster_id=None)
    assert leave(node, SlowController(step_count=1)) == BrokerState.SHUTTING_DOWN


def test_one_that_does_nothing_is_not(tmp_path: Path, monkeypatch: Any, caplog: Any) -> None:
    monkeypatch.setattr("broker.server.node.NEAR_CONTROLLER_SECONDS", 0.01)
    node = Node(config_of(tmp_path, "1@localhost:9093,2@localhost:9094"), cluster_id=None)
    assert leave(node, SlowController(step_count=0)) == BrokerState.RUNNING
    assert "stopping without the controller" in caplog.text
