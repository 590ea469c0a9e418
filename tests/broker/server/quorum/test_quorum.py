"""Whole nodes of a quorum in one process: elections, requests to the controller, failures."""

import asyncio
import socket
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from broker.metadata.control.assignments import PARTITIONS_PER_STEP
from broker.metadata.features import SUPPORTED_FEATURES
from broker.records.build import build_batch
from broker.server.quorum.controller.leadership import RECORDS_PER_STEP as BATCH_RECORDS_PER_STEP
from broker.server.quorum.metadata_machine import RECORDS_PER_STEP
from broker.server.quorum.quorum import MANY_RECORDS, Quorum
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages import add_raft_voter
from common.kafka.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from common.kafka.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    Feature,
    Listener,
)
from common.kafka.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from common.kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from common.kafka.protocol.records.metadata import TopicRecord, encode_metadata_record
from tests.lib.quorum_nodes import (
    CLUSTER_ID,
    Nodes,
    ask,
    create_topic,
    open_quorum,
    run,
    until,
)

MANY_PARTITIONS = 4 * PARTITIONS_PER_STEP
PATIENT = {"broker.session.timeout.ms": "3600000"}
"""The broker sends one heartbeat, and a slow machine must not fence it amid a batch."""


async def register(quorum: Quorum) -> Any:
    return await ask(
        quorum,
        BrokerRegistrationRequest(
            broker_id=1,
            cluster_id=CLUSTER_ID,
            incarnation_id=bytes(15) + b"i",
            listeners=[Listener(name="PLAINTEXT", host="127.0.0.1", port=9092)],
            features=[
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED_FEATURES.items()
            ],
            log_dirs=[bytes(15) + b"d"],
        ),
        4,
    )


async def beat(quorum: Quorum, broker_epoch: int) -> Any:
    return await ask(
        quorum,
        BrokerHeartbeatRequest(
            broker_id=1,
            broker_epoch=broker_epoch,
            current_metadata_offset=quorum.applied_offset - 1,
            want_fence=False,
        ),
        1,
    )


def test_one_node_alone_answers_before_ask_returns(tmp_path: Path) -> None:
    async def scenario() -> None:
        quorum = open_quorum(tmp_path, {})
        told: list[str] = []
        quorum.machine.on_change = lambda delta: told.append(f"change {len(delta.created_topics)}")
        quorum.on_leader_change = lambda: told.append(f"leader {quorum.leader_id}")
        quorum.start()
        assert quorum.is_serving
        assert told == ["leader 1"]
        answers: list[Message] = []
        request = CreateTopicsRequest(topics=[CreatableTopic(name="a")])
        quorum.channel.ask(request, 7, answers.append, timeout_ms=1)
        assert [answer.topics[0].error_code for answer in answers] == [ErrorCode.NONE]
        assert told == ["leader 1", "change 1"]
        assert quorum.controller_ports == {}
        quorum.begin_stop()
        assert quorum.has_stopped

    run(scenario)


def test_what_writes_very_much_is_written_applied_and_followed_in_turns(tmp_path: Path) -> None:
    async def scenario() -> None:
        quorum = open_quorum(tmp_path, PATIENT, rules=None)
        quorum.start()
        registered = await register(quorum)
        await beat(quorum, registered.broker_epoch)
        told: list[int] = []
        quorum.machine.on_change = lambda delta: told.append(len(delta.changed_partitions))
        topic = CreatableTopic(name="a", num_partitions=MANY_RECORDS, replication_factor=1)
        answers: list[Message] = []
        request = CreateTopicsRequest(topics=[topic])
        quorum.channel.ask(request, 7, answers.append, timeout_ms=60_000)
        seen = []
        while not answers:
            seen.append((quorum.raft.log.end_offset, quorum.applied_offset, len(told)))
            await asyncio.sleep(0)
        before = seen[0][0]
        after = before + 1 + MANY_RECORDS
        assert list(dict.fromkeys(seen)) == [
            (before, before, 0),
            (after, before, 0),
            (after, after, 0),
        ]
        assert (told, answers[0].topics[0].error_code) == ([1], ErrorCode.NONE)
        quorum.begin_stop()

    run(scenario)


def test_nobody_sees_a_part_of_a_large_batch_and_no_turn_has_all_of_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        quorum = open_quorum(tmp_path, PATIENT, rules=None)
        quorum.start()
        registered = await register(quorum)
        await beat(quorum, registered.broker_epoch)
        assert await create_topic(quorum, "a") == ErrorCode.NONE
        partitions = quorum.image.topics.by_name["a"].partitions
        answers: list[Message] = []
        topic = CreatePartitionsTopic(name="a", count=1 + MANY_PARTITIONS, assignments=None)
        request = CreatePartitionsRequest(topics=[topic])
        quorum.channel.ask(request, 3, answers.append, timeout_ms=60_000)
        position, seen = quorum.machine.position, []
        while not answers:
            is_applied = quorum.machine.position != position
            seen.append((quorum.raft.log.end_offset - position.offset, len(partitions), is_applied))
            await asyncio.sleep(0)
        assert list(dict.fromkeys(seen)) == [
            (0, 1, False),
            (MANY_PARTITIONS, 1, False),
            (MANY_PARTITIONS, 1 + MANY_PARTITIONS, True),
        ]
        turns = Counter(seen)
        chosen_and_encoded = turns[0, 1, False]
        assert chosen_and_encoded >= MANY_PARTITIONS / PARTITIONS_PER_STEP + (
            MANY_PARTITIONS / BATCH_RECORDS_PER_STEP
        )
        assert turns[MANY_PARTITIONS, 1, False] >= MANY_PARTITIONS / RECORDS_PER_STEP
        assert answers[0].results[0].error_code == ErrorCode.NONE
        quorum.begin_stop()

    run(scenario)


@pytest.mark.parametrize("clean", [True, False])
def test_a_node_that_stops_amid_a_large_batch_has_all_of_it_when_it_is_back(
    tmp_path: Path, *, clean: bool
) -> None:
    async def scenario() -> None:
        quorum = open_quorum(tmp_path, PATIENT, rules=None)
        quorum.start()
        registered = await register(quorum)
        await beat(quorum, registered.broker_epoch)
        topic = CreatableTopic(name="a", num_partitions=MANY_PARTITIONS, replication_factor=1)
        answers: list[Message] = []
        request = CreateTopicsRequest(topics=[topic])
        quorum.channel.ask(request, 7, answers.append, timeout_ms=60_000)
        while not quorum.raft.is_applying:
            await asyncio.sleep(0)
        if clean:
            quorum.begin_stop()
            await quorum.wait_stopped()
        else:
            quorum._close()
        for _ in range(10):
            await asyncio.sleep(0)
        assert not quorum.image.topics.by_name
        assert answers[0].topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
        again = open_quorum(tmp_path, PATIENT, rules=None)
        again.start()
        assert len(again.image.topics.by_name["a"].partitions) == MANY_PARTITIONS
        again._close()

    run(scenario)


def test_a_large_batch_that_cannot_be_read_changes_nothing_and_ends_the_node(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        quorum = open_quorum(tmp_path, {})
        quorum.start()
        failed: list[str] = []
        quorum.on_fatal = failed.append
        good = encode_metadata_record(TopicRecord(name="a", topic_id=bytes(15) + b"a"))
        values = [*[good] * RECORDS_PER_STEP, b"\x01\x7f\x00"]
        quorum.raft.append(build_batch([(None, value, (), 0) for value in values]))
        quorum._pump()
        assert not failed
        while not failed:
            await asyncio.sleep(0)
        assert "unknown metadata record type 127" in failed[0]
        assert not quorum.image.topics.by_name
        assert quorum.has_stopped

    run(scenario)


def test_a_follower_reads_a_large_batch_in_steps_before_it_appends_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        nodes = Nodes(tmp_path, 3)
        nodes.start_all()
        leader, follower = await nodes.find_leader(), nodes.follower()
        await until(lambda: follower.raft.log.end_offset == leader.raft.log.end_offset)
        before = follower.raft.log.end_offset
        reading, read_ahead = [], follower.raft.log.read_ahead

        def watched(records: Any) -> Iterator[None]:
            for _ in read_ahead(records):
                reading.append(follower.raft.log.end_offset)
                yield

        follower.raft.log.read_ahead = watched  # type: ignore[method-assign]
        names = [f"a-{number}" for number in range(1_000)]
        topics = [TopicRecord(name=name, topic_id=name.zfill(16).encode()) for name in names]
        for _ in leader._leadership._append(topics):
            pass
        leader._pump()
        await until(lambda: len(follower.image.topics.by_name) == len(names))
        assert set(reading) == {before}
        assert len(reading) >= len(names) // RECORDS_PER_STEP
        nodes.kill_all()

    run(scenario)


def test_three_nodes_elect_and_serve_through_every_channel(tmp_path: Path) -> None:
    async def scenario() -> None:
        nodes = Nodes(tmp_path, 3)
        nodes.start_all()
        await nodes.find_leader()
        for node_id, quorum in nodes.running.items():
            assert await create_topic(quorum, f"through-{node_id}") == ErrorCode.NONE
            assert (
                await create_topic(quorum, f"through-{node_id}") == ErrorCode.TOPIC_ALREADY_EXISTS
            )
        for quorum in nodes.running.values():
            await until(lambda quorum=quorum: len(quorum.image.topics.by_name) == 3)
        nodes.kill_all()

    run(scenario)


def test_what_was_acknowledged_survives_the_leader(tmp_path: Path) -> None:
    async def scenario() -> None:
        nodes = Nodes(tmp_path, 3)
        nodes.start_all()
        first = await nodes.find_leader()
        follower = next(q for q in nodes.running.values() if q is not first)
        names = [f"topic-{number}" for number in range(20)]
        for name in names[:10]:
            assert await create_topic(follower, name) == ErrorCode.NONE
        nodes.kill(first.node_id)
        for name in names[10:]:
            code = await create_topic(follower, name)
            assert code in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}
        second = await nodes.find_leader()
        assert second.node.leader_epoch > first.node.leader_epoch
        assert sorted(second.image.topics.by_name) == sorted(names)
        again = nodes.start(first.node_id)
        await until(lambda: sorted(again.image.topics.by_name) == sorted(names))
        nodes.kill_all()

    run(scenario)


def test_a_real_controller_registers_a_broker_and_places_topics_on_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        quorum = open_quorum(tmp_path, PATIENT, rules=None)
        quorum.start()
        registered = await register(quorum)
        assert registered.error_code == ErrorCode.NONE
        beaten = await beat(quorum, registered.broker_epoch)
        assert (beaten.error_code, beaten.is_fenced) == (ErrorCode.NONE, False)
        assert await create_topic(quorum, "a") == ErrorCode.NONE
        assert quorum.image.topics.by_name["a"].partitions[0].leader == 1
        quorum.begin_stop()

    run(scenario)


def test_a_clean_stop_hands_the_leadership_over(tmp_path: Path) -> None:
    async def scenario() -> None:
        nodes = Nodes(tmp_path, 3)
        nodes.start_all()
        first = await nodes.find_leader()
        first.begin_stop()
        await first.wait_stopped()
        assert first.has_stopped
        del nodes.running[first.node_id]
        second = await nodes.find_leader()
        assert second is not first
        assert await create_topic(nodes.follower(), "after") == ErrorCode.NONE
        nodes.kill_all()

    run(scenario)


def test_a_request_without_a_leader_waits_and_is_answered_in_its_turn(tmp_path: Path) -> None:
    async def scenario() -> None:
        nodes = Nodes(tmp_path, 3)
        lonely = nodes.start(1)
        refused = await ask(lonely, CreateTopicsRequest(topics=[CreatableTopic(name="a")]), 7, 30)
        assert refused.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
        answered: list[str] = []
        for name in "abc":
            lonely.channel.ask(
                CreateTopicsRequest(topics=[CreatableTopic(name=name)]),
                7,
                lambda response: answered.append(response.topics[0].name),
                timeout_ms=60_000,
            )
        assert answered == []
        nodes.start(2)
        nodes.start(3)
        await until(lambda: len(answered) == 3)
        assert answered == ["a", "b", "c"]
        nodes.kill_all()

    run(scenario)


def test_all_nodes_at_once_gone_and_back_keep_everything(tmp_path: Path) -> None:
    async def scenario() -> None:
        nodes = Nodes(tmp_path, 3)
        nodes.start_all()
        leader = await nodes.find_leader()
        for number in range(10):
            assert await create_topic(leader, f"topic-{number}") == ErrorCode.NONE
        nodes.kill_all()
        nodes.start_all()
        leader = await nodes.find_leader()
        assert len(leader.image.topics.by_name) == 10
        assert await create_topic(nodes.follower(), "topic-0") == ErrorCode.TOPIC_ALREADY_EXISTS
        nodes.kill_all()

    run(scenario)


def test_a_broker_of_its_own_follows_and_asks(tmp_path: Path) -> None:
    async def scenario() -> None:
        nodes = Nodes(tmp_path, 1)
        nodes.start(1)
        observer = nodes.start(9)
        await nodes.find_leader()
        assert await create_topic(observer, "a") == ErrorCode.NONE
        await until(lambda: "a" in observer.image.topics.by_name)
        assert not observer.node.is_leader
        nodes.kill(1)
        nodes.start(1)
        assert await create_topic(observer, "b") == ErrorCode.NONE
        await until(lambda: "b" in observer.image.topics.by_name)
        nodes.kill_all()

    run(scenario)


def test_a_heartbeat_does_not_wait_for_a_voter_that_is_silent(tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = Nodes(tmp_path, 1).settings_of(1)
        quorum = open_quorum(tmp_path, settings, directory_id=b"d" * 16)
        quorum.start()
        quorum.raft.upgrade_kraft_version(1, validate_only=False)
        quorum.raft.tick()
        await until(lambda: not quorum.node.has_uncommitted_voters)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            added: list[Message] = []
            request = add_raft_voter.AddRaftVoterRequest(
                voter_id=2,
                voter_directory_id=b"e" * 16,
                listeners=[add_raft_voter.Listener(name="CONTROLLER", host="127.0.0.1", port=port)],
            )
            quorum.ask(request, 1, added.append, timeout_ms=60_000)
            beaten: list[Message] = []
            quorum.ask(BrokerHeartbeatRequest(), 1, beaten.append, timeout_ms=60_000)
            await until(lambda: bool(beaten))
            assert not added
        quorum.begin_stop()
        await quorum.wait_stopped()

    run(scenario)


def test_a_node_that_was_away_is_told_what_a_snapshot_changed(tmp_path: Path) -> None:
    async def scenario() -> None:
        # Every commit is followed by a snapshot, and every segment holds one batch.
        nodes = Nodes(tmp_path, 3, **{"metadata.log.max.record.bytes.between.snapshots": "1"})
        nodes.start_all()
        leader = await nodes.find_leader()
        assert await create_topic(leader, "before") == ErrorCode.NONE
        away = nodes.follower()
        await until(lambda: "before" in away.image.topics.by_name)
        nodes.kill(away.node_id)
        for number in range(5):
            assert await create_topic(leader, f"topic-{number}") == ErrorCode.NONE
        assert leader.raft.log.start_offset > away.applied_offset
        back = open_quorum(tmp_path / str(away.node_id), nodes.settings_of(away.node_id))
        created: set[bytes] = set()
        back.machine.on_change = lambda delta: created.update(delta.created_topics)
        back.start()
        await until(lambda: len(back.image.topics.by_name) == 6)
        assert created == set(back.image.topics.by_id)
        assert back.image == leader.image
        back._close()
        nodes.kill_all()

    run(scenario)


def test_a_log_from_before_there_was_a_quorum_opens(tmp_path: Path) -> None:
    async def scenario() -> None:
        old = open_quorum(tmp_path, {})
        old.start()
        assert await create_topic(old, "old") == ErrorCode.NONE
        old._close()
        (tmp_path / "__cluster_metadata-0" / "quorum-state").unlink()
        quorum = open_quorum(tmp_path, {})
        quorum.start()
        assert quorum.is_serving
        assert quorum.node.leader_epoch == 2
        assert list(quorum.image.topics.by_name) == ["old"]
        quorum._close()

    run(scenario)


def test_a_disk_that_fails_ends_the_node(tmp_path: Path) -> None:
    async def scenario() -> None:
        quorum = open_quorum(tmp_path, {})
        quorum.start()
        told: list[str] = []
        quorum.on_fatal = told.append

        def fail() -> None:
            raise OSError(5, "Input/output error")

        quorum.raft.log.flush = fail
        answers: list[Message] = []
        request = CreateTopicsRequest(topics=[CreatableTopic(name="a")])
        quorum.channel.ask(request, 7, answers.append, timeout_ms=60_000)
        assert told == ["the metadata log failed: OSError(5, 'Input/output error')"]
        assert quorum.has_stopped
        assert quorum.image.topics.by_name == {}
        assert [answer.topics[0].error_code for answer in answers] == [ErrorCode.REQUEST_TIMED_OUT]

    run(scenario)


def test_what_cannot_be_read_is_told_at_the_start(tmp_path: Path) -> None:
    async def scenario() -> None:
        quorum = open_quorum(tmp_path, {})
        quorum.start()
        quorum.raft.append(build_batch([(None, b"\x01\x7f\x00", (), 0)]))
        quorum.raft.log.flush()
        quorum._close()
        with pytest.raises(OSError, match="unknown metadata record type 127"):
            open_quorum(tmp_path, {}).start()
        (tmp_path / "__cluster_metadata-0" / "quorum-state").write_bytes(b"")
        with pytest.raises(OSError, match="quorum-state cannot be read"):
            open_quorum(tmp_path, {})

    run(scenario)


def test_a_voter_of_another_cluster_is_named_once(tmp_path: Path, caplog: Any) -> None:
    async def scenario() -> None:
        nodes = Nodes(tmp_path, 2)
        nodes.start(1)
        stranger = nodes.start(2)
        stranger.raft.node._state.config = replace(
            stranger.raft.node._state.config, cluster_id="another"
        )
        await until(lambda: "another cluster" in caplog.text)
        for quorum in nodes.running.values():
            assert not quorum.is_serving
        nodes.kill_all()

    run(scenario)
    lines = [line for line in caplog.messages if "another cluster" in line]
    assert len(lines) == len(set(lines))
