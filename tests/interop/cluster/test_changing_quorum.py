"""Real nodes: static voters become ones that change, and controllers move to other ports."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from millstream.processes.cluster_layout import free_ports, initial_controllers
from tests.lib.dynamic_quorum import CLUSTER_ID, DynamicQuorum
from tests.lib.topic_creator import TopicCreator

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def test_a_running_quorum_of_static_voters_becomes_one_that_changes(tmp_path: Path) -> None:
    with DynamicQuorum(tmp_path, [1, 2, 3, 4]) as nodes:
        static = ",".join(
            f"{node_id}@127.0.0.1:{nodes.controller_ports[node_id]}" for node_id in (1, 2, 3)
        )
        for node_id in (1, 2, 3):
            nodes.configure(node_id, "broker,controller", f"controller.quorum.voters={static}")
            nodes.format(node_id)
        nodes.start_together((1, 2, 3))
        bootstrap = nodes.bootstrap_server(1)
        upgrade = ("features", "--bootstrap-server", bootstrap, "upgrade")
        until_told(lambda: nodes.run(*upgrade, "--feature", "kraft.version=1"))
        nodes.configure(4, "broker,controller", "controller.quorum.auto.join.enable=true")
        nodes.format(4, "--no-initial-controllers")
        nodes.start(4)
        until_told(lambda: assert_voters(nodes, bootstrap, [1, 2, 3, 4]))
        # The configured voters are out of use: a node that has them starts with those of the log.
        nodes.remove(bootstrap, 1)
        nodes.stop(1)
        nodes.stop(3)
        nodes.start(3)
        assert nodes.voters(nodes.bootstrap_server(4)) == [2, 3, 4]


def test_static_voters_of_an_old_folder_are_those_of_initial_controllers(tmp_path: Path) -> None:
    with DynamicQuorum(tmp_path, [1, 2, 3]) as nodes:
        addresses = {
            node_id: f"127.0.0.1:{port}" for node_id, port in nodes.controller_ports.items()
        }
        static = ",".join(f"{node_id}@{address}" for node_id, address in addresses.items())
        for node_id in (1, 2, 3):
            nodes.configure(node_id, "broker,controller", f"controller.quorum.voters={static}")
            nodes.format(node_id)
        nodes.start_together((1, 2, 3))
        bootstrap = nodes.bootstrap_server(1)
        TopicCreator(bootstrap).create_one()
        for node_id in (1, 2, 3):
            nodes.stop(node_id)
            nodes.configure(node_id, "broker,controller")
        first = initial_controllers(nodes.controller_ports)
        cluster = {"CLUSTER_ID": CLUSTER_ID, "INITIAL_CONTROLLERS": first}
        nodes.start_together((1, 2, 3), **cluster)
        assert TopicCreator(bootstrap).found() == {"topic-0"}
        upgrade = ("features", "--bootstrap-server", bootstrap, "upgrade")
        until_told(lambda: nodes.run(*upgrade, "--feature", "kraft.version=1"))
        nodes.remove(bootstrap, 3)
        for node_id in (1, 2, 3):
            nodes.stop(node_id)
        nodes.start_together((1, 2, 3), **cluster)
        assert nodes.voters(bootstrap) == [1, 2]
        assert TopicCreator(bootstrap).found() == {"topic-0"}


def test_controllers_that_come_back_at_other_ports_find_each_other(tmp_path: Path) -> None:
    with DynamicQuorum(tmp_path, [1, 2, 3]) as nodes:
        for node_id in (1, 2, 3):
            nodes.configure(node_id, "broker,controller")
        first = initial_controllers(nodes.controller_ports)
        for node_id in (1, 2, 3):
            nodes.format(node_id, "--initial-controllers", first)
        nodes.start_together((1, 2, 3))
        bootstrap = nodes.bootstrap_server(1)
        topics = TopicCreator(bootstrap)
        topics.create_one()
        # One that moves is found by the leader's voter set, which it corrects.
        nodes.stop(3)
        move(nodes, (3,))
        nodes.start(3)
        until_told(lambda: assert_ports(nodes, bootstrap))
        assert "Removed  KRaft controller 2" in nodes.remove(bootstrap, 2)
        assert "Added controller 2 with directory id" in nodes.add(bootstrap, 2)
        # Of those that all move only the bootstrap servers tell where they are.
        for node_id in (1, 2, 3):
            nodes.kill(node_id)
        move(nodes, (1, 2, 3))
        nodes.start_together((1, 2, 3))
        until_told(lambda: assert_ports(nodes, bootstrap))
        topics.create_one()
        assert topics.found() == {"topic-0", "topic-1"}


def move(nodes: DynamicQuorum, node_ids: tuple[int, ...]) -> None:
    """Give nodes other controller ports, of which the files of all nodes tell."""
    nodes.controller_ports |= dict(zip(node_ids, free_ports(), strict=False))
    for node_id in nodes.controller_ports:
        nodes.configure(node_id, "broker,controller")


def assert_ports(nodes: DynamicQuorum, bootstrap: str) -> None:
    told = nodes.run("metadata-quorum", "--bootstrap-server", bootstrap, "describe", "--status")
    voters = next(line for line in told.splitlines() if line.startswith("CurrentVoters"))
    for port in nodes.controller_ports.values():
        assert f"CONTROLLER://127.0.0.1:{port}" in voters, told


def assert_voters(nodes: DynamicQuorum, bootstrap: str, expected: list[int]) -> None:
    assert nodes.voters(bootstrap) == expected


def until_told(attempt: Callable[[], object]) -> None:
    """Repeat what fails until the leader has heard of all voters."""
    deadline = time.monotonic() + 30
    while True:
        try:
            attempt()
        except AssertionError:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        else:
            return
