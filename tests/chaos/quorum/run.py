"""Three controllers become five and then three other ones, while they are killed at every step.

Topics are created all the time. During each change of the voters something is killed with SIGKILL:
the tool that asked for it, the leader, the new controller or another voter; what was killed comes
back, and the change is asked for again until it is made. Some controllers come back at another
port. Then wrong changes are asked for, none of which may be made.
"""

import random
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

from broker.cli.admin_settings import admin_settings
from common.kafka.admin.client import AdminClient
from common.kafka.admin.cluster import describe_metadata_quorum
from common.kafka.errors import KafkaError
from millstream.processes.cluster_layout import free_ports, initial_controllers
from tests.chaos.disk_shim import ENOSPC, SWITCH, build_shim
from tests.lib.dynamic_quorum import CLUSTER_ID, DynamicQuorum
from tests.lib.topic_creator import TopicCreator

FIRST, OTHERS, EXTRA, BROKER = (1, 2, 3), (4, 5, 6), 7, 101
OTHER_CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"
PATIENCE_SECONDS = 60.0
DURING_SECONDS = 0.8
"""A tool needs most of it to start."""


class QuorumChaos:
    """One history; `run` raises AssertionError for what goes wrong."""

    def __init__(self, folder: Path, seed: int, say: Callable[[str], None]) -> None:
        self._random = random.Random(seed)
        self._say = say
        self._folder = folder
        self._nodes = DynamicQuorum(folder, [*FIRST, *OTHERS, EXTRA, BROKER])
        self._bootstrap = self._nodes.bootstrap_server(BROKER)
        self._voters = list(FIRST)
        victims = ["the tool", "the leader", "the voter", "another voter"]
        self._victims = cycle(self._random.sample(victims, len(victims)))
        self.topics = TopicCreator(self._bootstrap)
        self._began = time.monotonic()

    def run(self, *, is_short: bool = False) -> None:
        """Play the history; a short one ends with the exchange of all voters."""
        with self._nodes:
            self._prepare()
            self.topics.create_one()
            self.topics.start()
            for node_id in OTHERS[:2]:
                self._nodes.start(node_id)
                self._change(node_id, is_added=True)
            self._move(self._random.choice(self._voters))
            for node_id in FIRST[:2]:
                self._change(node_id, is_added=False)
            self._refuse_wrong_changes()
            self._fill_the_disk_of(OTHERS[2])
            self._change(OTHERS[2], is_added=True)
            self._change(FIRST[2], is_added=False)
            if not is_short:
                # A voter that is removed comes back, and goes again.
                self._change(FIRST[2], is_added=True)
                self._change(FIRST[2], is_added=False)
                self._join_by_itself(EXTRA)
                self._change(EXTRA, is_added=False)
            self._end()

    def _prepare(self) -> None:
        nodes = self._nodes
        del nodes.controller_ports[BROKER]
        for node_id in nodes.controller_ports:
            nodes.configure(node_id)
        nodes.configure(BROKER, "broker")
        first = initial_controllers({each: nodes.controller_ports[each] for each in FIRST})
        for node_id in FIRST:
            nodes.format(node_id, "--initial-controllers", first)
        nodes.format(BROKER)
        nodes.start_together((*FIRST, BROKER))
        for node_id in (*OTHERS, EXTRA):
            nodes.format(node_id, "--no-initial-controllers")

    # Changes that are made.

    def _change(self, node_id: int, *, is_added: bool) -> None:
        """Add or remove a voter while something is killed; then insist on it."""
        command = self._command(node_id, is_added=is_added)
        tool = subprocess.Popen(
            [sys.executable, "-m", "broker", *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(self._random.uniform(0, DURING_SECONDS))
        victim = next(self._victims)
        what = f"{'add' if is_added else 'remove'} {node_id}"
        self._tell(f"{what}: kill -9 of {victim}")
        if victim == "the tool":
            tool.kill()
        else:
            self._kill_and_restart(self._named(victim, node_id))
        tool.wait(PATIENCE_SECONDS)
        self._insist(command)
        self._voters = sorted({*self._voters, node_id} if is_added else {*self._voters} - {node_id})
        self._await_voters()
        self._tell(f"{what}: done, voters {self._voters}")

    def _command(self, node_id: int, *, is_added: bool) -> list[str]:
        make = self._nodes.addition if is_added else self._nodes.removal
        return make(self._bootstrap, node_id)

    def _named(self, victim: str, node_id: int) -> int:
        leader_id = self._leader()
        if victim == "the leader" and leader_id in self._nodes.running:
            return leader_id
        if victim == "the voter":
            return node_id
        others = [each for each in self._voters if each not in (leader_id, node_id)]
        return self._random.choice(others or [node_id])

    def _leader(self) -> int:
        with AdminClient(admin_settings(self._bootstrap, None, None)) as client:
            try:
                return describe_metadata_quorum(client).leader_id
            except KafkaError:
                return -1  # There is none at the moment.

    def _kill_and_restart(self, node_id: int) -> None:
        self._nodes.kill(node_id)
        time.sleep(self._random.choice([0, 0.2]))
        self._nodes.start(node_id)

    def _insist(self, command: list[str]) -> None:
        """Repeat a change until it is made, perhaps by an earlier attempt."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            done = self._attempt(command)
            is_made = "DuplicateVoter" in done.stderr or "VoterNotFound" in done.stderr
            if done.returncode == 0 or is_made or self._is_made(done.stderr):
                return
            assert time.monotonic() < deadline, (command, done.stdout, done.stderr)
            time.sleep(0.1)

    @staticmethod
    def _is_made(errors: str) -> bool:
        return "is already part of the set of voters" in errors or "Cannot remove voter" in errors

    @staticmethod
    def _attempt(command: list[str]) -> subprocess.CompletedProcess[str]:
        tool = [sys.executable, "-m", "broker", *command]
        return subprocess.run(
            tool, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
        )

    def _await_voters(self) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (found := self._found_voters()) != self._voters:
            assert time.monotonic() < deadline, (found, self._voters)
            time.sleep(0.1)

    def _found_voters(self) -> list[int]:
        try:
            return self._nodes.voters(self._bootstrap)
        except AssertionError:
            return []  # There is no leader at the moment.

    def _move(self, node_id: int) -> None:
        """Let a voter come back at another port; the others find it by the voter set."""
        nodes = self._nodes
        nodes.kill(node_id)
        nodes.controller_ports[node_id] = next(free_ports())
        nodes.configure(node_id)
        nodes.start(node_id)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (port := self._port_of(node_id)) != nodes.controller_ports[node_id]:
            assert time.monotonic() < deadline, (node_id, port)
            time.sleep(0.1)
        self._tell(f"{node_id} is at another port")

    def _port_of(self, node_id: int) -> int:
        with AdminClient(admin_settings(self._bootstrap, None, None)) as client:
            try:
                found = describe_metadata_quorum(client).endpoints.get(node_id, [":0"])
            except KafkaError:
                return 0
        return int(found[0].rpartition(":")[2])

    def _fill_the_disk_of(self, node_id: int) -> None:
        """Start a new controller on a full disk: it ends, and it does not become a voter."""
        shim = build_shim(self._folder)
        if shim is not None:
            switch = self._nodes.data(node_id) / SWITCH
            self._nodes.start(node_id, LD_PRELOAD=str(shim))
            switch.write_text(f"fail {ENOSPC}\n")
            self._refuse(self._command(node_id, is_added=True))
            self._nodes.running.pop(node_id).communicate(timeout=PATIENCE_SECONDS)
            switch.unlink()
            self._tell(f"{node_id} had a full disk")
        self._nodes.start(node_id)

    def _join_by_itself(self, node_id: int) -> None:
        self._nodes.configure(node_id, "controller", "controller.quorum.auto.join.enable=true")
        self._nodes.start(node_id)
        self._voters = sorted([*self._voters, node_id])
        self._await_voters()
        self._tell(f"{node_id} has joined by itself")
        self._nodes.stop(node_id)
        self._nodes.configure(node_id)
        self._nodes.start(node_id)

    # Changes that are refused.

    def _refuse_wrong_changes(self) -> None:
        nodes, before = self._nodes, self._found_voters()
        properties = nodes.data(EXTRA) / "meta.properties"
        right = properties.read_text()
        # A voter of another cluster.
        properties.write_text(right.replace(CLUSTER_ID, OTHER_CLUSTER_ID))
        nodes.start(EXTRA, CLUSTER_ID=OTHER_CLUSTER_ID)
        self._refuse(self._command(EXTRA, is_added=True))
        assert "belongs to another cluster" in nodes.log(EXTRA)
        nodes.kill(EXTRA)
        properties.write_text(right)
        # A controller that does not run, and one that is a voter.
        self._refuse(self._command(EXTRA, is_added=True))
        self._refuse(self._command(self._voters[0], is_added=True))
        # The directory id of a voter, as that of another node: the id does not make it that voter.
        own, stolen = nodes.directory_id(EXTRA), nodes.directory_id(self._voters[0])
        removal = self._command(EXTRA, is_added=False)
        self._refuse(removal)
        self._refuse([stolen if part == own else part for part in removal])
        assert self._found_voters() == before, "a refused change was made"
        self._tell("wrong changes are refused")

    def _refuse(self, command: list[str]) -> None:
        done = self._attempt(command)
        assert done.returncode == 1, (command, done.stdout)

    # The end.

    def _end(self) -> None:
        """Delete all controllers that vote no more, and look for every topic."""
        nodes, topics = self._nodes, self.topics
        for node_id in (*FIRST, EXTRA):
            if node_id in nodes.running:
                nodes.stop(node_id)
            nodes.delete(node_id)
        topics.end()
        assert self._found_voters() == list(OTHERS)
        assert topics.found() == set(topics.created)
        for node_id in (*OTHERS, BROKER):
            nodes.kill(node_id)
        nodes.start_together((*OTHERS, BROKER))
        assert topics.found() == set(topics.created)
        assert self._found_voters() == list(OTHERS)

    def _tell(self, what: str) -> None:
        longest = max(self.topics.pauses)[0]
        self._say(
            f"{time.monotonic() - self._began:5.1f} s: {what}; {len(self.topics.created)} topics, "
            f"longest pause {longest:.2f} s"
        )
