"""A broker leads a partition of three replicas: who is answered what, and when."""

from typing import Any

import pytest

from broker.server.handlers.fetch import fetch, list_offsets
from broker.server.handlers.fetch.list_offsets import ListOffsets
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.fetch import ReplicaState
from common.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from common.kafka.protocol.records.metadata import BrokerRegistrationChangeRecord
from tests.lib.logs import NOW_MS, last_of
from tests.lib.served_replica import (
    LISTENER,
    TOPIC,
    Client,
    Context,
    ServedReplica,
    epoch_of,
    fetch_error,
    fetched,
    produced,
)


def test_acks_all_is_answered_when_every_replica_in_sync_has_it():
    node = ServedReplica()
    waits = node.produce()
    node.follow(2, 0)
    node.follow(2, 1)
    assert waits.answer is None
    node.follow(3, 1)
    assert produced(waits) == (0, 0)
    assert node.high_watermark == 1


@pytest.mark.parametrize("acks", [0, 1])
def test_other_acks_do_not_wait(acks):
    node = ServedReplica()
    context = node.produce(acks=acks)
    assert (context.answer is None) == (acks == 0)
    assert node.partition.log.log_end_offset == 1
    assert node.high_watermark == 0


def test_acks_all_takes_no_longer_than_its_timeout():
    node = ServedReplica()
    waits = node.produce(timeout_ms=100)
    node.loop.advance(99)
    assert waits.answer is None
    node.loop.advance(1)
    assert produced(waits) == (ErrorCode.REQUEST_TIMED_OUT, 0)
    node.follow(2, 1)
    node.follow(3, 1)  # nobody is answered twice


def test_acks_all_needs_enough_replicas_in_sync_before_the_append():
    node = ServedReplica(isr=(1,))
    assert produced(node.produce())[0] == ErrorCode.NOT_ENOUGH_REPLICAS
    assert node.partition.log.log_end_offset == 0
    assert produced(node.produce(acks=1))[0] == 0


def test_too_few_replicas_left_after_the_append_are_told():
    node = ServedReplica(isr=(1, 2))
    waits = node.produce()
    node.change(isr=[1])
    assert waits.answer is None  # nothing is committed by so few
    node.change(isr=[1, 2])
    node.follow(2, 1)
    assert produced(waits)[0] == 0


def test_who_waits_when_the_leadership_moves_is_told_who_leads():
    node = ServedReplica()
    waits = node.produce()
    node.change(leader=2, isr=[2, 3])
    (answer,) = waits.answer.responses[0].partition_responses
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (2, 1)
    (endpoint,) = waits.answer.node_endpoints
    assert (endpoint.node_id, endpoint.host, endpoint.port) == (2, "127.0.0.1", 9002)


def test_a_connection_that_closes_waits_no_more():
    node = ServedReplica()
    waits = node.produce()
    waits.connection.close()
    assert len(node.partition.leader.waits) == 0
    node.loop.advance(60_000)
    assert waits.answer is None


def test_a_consumer_reads_what_is_committed_and_waits_for_the_rest():
    node = ServedReplica()
    node.produce()
    reads = node.fetch(0)
    assert reads.answer is None
    node.follow(2, 1)
    node.follow(3, 1)
    node.loop.advance()
    assert fetched(reads).records
    assert fetched(reads).high_watermark == 1


def test_a_debugging_client_reads_to_the_end_of_the_log():
    node = ServedReplica()
    node.produce()
    assert not fetched(node.fetch(0, wait_ms=0)).records
    debugging = ReplicaState(replica_id=-2)
    assert fetched(node.fetch(0, wait_ms=0, replica_state=debugging)).records
    assert node.high_watermark == 0
    of_old_version = node.fetch(0, wait_ms=0, version=12, request={"replica_id": -2})
    assert fetched(of_old_version).records


def test_a_follower_that_waits_is_woken_by_an_append_and_not_by_a_commit():
    node = ServedReplica()
    waits = node.follow(2, 0, wait_ms=500)
    assert waits.answer is None
    node.produce()
    node.loop.advance()
    assert fetched(waits).records


def test_what_comes_between_two_steps_of_a_fetch_ends_the_waiting(monkeypatch):
    monkeypatch.setattr(fetch, "PARTITIONS_AT_ONCE", 0)
    leader, client = ServedReplica(), Client()
    client.has_turns = True
    waiting = leader.follow(2, 0, wait_ms=500, client=client)
    (place,) = client.places
    leader.produce(acks=1)
    client.has_turns = False
    client.go_on(place)
    assert waiting.answer is None
    leader.loop.advance()
    assert fetched(waiting).records


def test_a_second_request_of_a_follower_ends_the_waiting_of_the_first():
    node = ServedReplica()
    first = node.follow(2, 0, wait_ms=500)
    second = node.follow(2, 0, wait_ms=500, client=first.connection)
    assert first.answer is not None
    assert second.answer is None


@pytest.mark.parametrize(
    ("broker_id", "more", "code"),
    [
        (9, {}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (2, {"broker_epoch": epoch_of(2) - 1}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (2, {"broker_epoch": epoch_of(2) + 1}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (2, {"broker_epoch": -1}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (3, {"broker_epoch": -1}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (2, {"version": 12, "request": {"replica_id": 2}}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (2, {"version": 14, "request": {"replica_id": 2}}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (2, {"current_leader_epoch": 7}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (2, {"offset": 50}, ErrorCode.OFFSET_OUT_OF_RANGE),
    ],
)
def test_a_forged_follower_is_refused_and_moves_nothing(broker_id, more, code):
    node = ServedReplica(isr=(1, 2))
    waits = node.produce()
    assert fetch_error(node.follow(broker_id, **{"offset": 1, **more})) == code
    assert waits.answer is None
    assert node.high_watermark == 0
    assert node.isr_changes == []


def test_with_an_authorizer_the_right_counts_and_not_the_listener():
    """Brokers that move to another listener do it one after the other."""
    node = ServedReplica(
        settings={
            "listeners": f"{LISTENER}://:9092,BROKERS://:9093",
            "listener.security.protocol.map": f"{LISTENER}:PLAINTEXT,BROKERS:PLAINTEXT",
            "inter.broker.listener.name": "BROKERS",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        }
    )
    node.produce()
    for follower in (2, 3):
        assert fetch_error(node.follow(follower, 1)) == ErrorCode.NONE
    assert node.high_watermark == 1


def test_a_replica_fetches_only_where_brokers_do():
    node = ServedReplica(
        settings={
            "listeners": f"{LISTENER}://:9092,BROKERS://:9093",
            "listener.security.protocol.map": f"{LISTENER}:PLAINTEXT,BROKERS:PLAINTEXT",
            "inter.broker.listener.name": "BROKERS",
        }
    )
    node.produce()
    with pytest.raises(KafkaError) as refused:
        node.follow(2, 1)
    assert refused.value.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    broker = Client()
    broker.peer.listener_name = "BROKERS"
    for follower in (2, 3):
        assert fetch_error(node.follow(follower, 1, client=broker)) == ErrorCode.NONE
    assert node.high_watermark == 1


def test_who_has_caught_up_is_asked_to_be_taken_in():
    node = ServedReplica(isr=(1, 2))
    node.produce()
    node.follow(2, 1)
    node.follow(3, 0)
    assert node.isr_changes == []
    node.follow(3, 1)
    (change,) = node.isr_changes
    assert [broker_id for broker_id, _ in change.isr] == [1, 2, 3]
    assert dict(change.isr)[3] == epoch_of(3)


def test_a_consumer_of_old_metadata_is_told_who_leads():
    node = ServedReplica(leader=2)
    node.change(leader=3)
    refused = node.fetch(0, current_leader_epoch=0)
    answer = fetched(refused)
    assert answer.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (3, 1)
    assert [endpoint.node_id for endpoint in refused.answer.node_endpoints] == [3]


def test_a_consumer_may_read_from_a_follower_up_to_what_it_knows_to_be_committed():
    node = ServedReplica()
    node.produce()
    node.change(leader=2)
    log = node.partition.log
    assert not fetched(node.fetch(0, wait_ms=0)).records
    log.advance_high_watermark(1)
    assert fetched(node.fetch(0, wait_ms=0)).records


def test_an_incremental_fetch_answers_only_what_is_new():
    node = ServedReplica()
    opened = node.follow(2, 0, session_epoch=0)
    assert opened.answer.session_id > 0
    session = {"session_id": opened.answer.session_id}
    assert node.follow(2, 0, session_epoch=1, **session).answer.responses == []
    node.produce()
    assert fetched(node.follow(2, 0, session_epoch=2, **session)).records


def test_a_consumer_is_sent_to_a_replica_in_its_own_rack_that_has_what_it_asks_for():
    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    node = ServedReplica(settings={"replica.selector.class": selector})
    waits = node.produce()
    assert node.fetch(0, rack_id="rack-2", wait_ms=0).answer is not None
    node.follow(2, 1)
    node.follow(3, 1)
    assert waits.answer is not None
    sent = fetched(node.fetch(0, rack_id="rack-2"))
    assert (sent.preferred_read_replica, sent.records) == (2, b"")
    for rack_id in ("rack-1", "rack-9", ""):
        stays = fetched(node.fetch(0, rack_id=rack_id))
        assert stays.preferred_read_replica == -1
        assert stays.records


def offset_at(node: ServedReplica, timestamp_ms: int) -> int:
    """Ask as a consumer for the first record as late as this."""
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp_ms)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=TOPIC, partitions=[wanted])]
    )
    failures: Any = None
    answers = ListOffsets(node.partitions, failures).handle(Context(7), request)  # type: ignore[arg-type]
    return last_of(answers).topics[0].partitions[0].offset


@pytest.mark.parametrize("timestamp_ms", [NOW_MS, list_offsets.MAX_TIMESTAMP])
def test_no_offset_is_told_of_a_record_that_is_not_committed(timestamp_ms):
    node = ServedReplica()
    node.produce()
    assert offset_at(node, timestamp_ms) == -1
    node.follow(2, 1)
    node.follow(3, 1)
    assert offset_at(node, timestamp_ms) == 0


def test_nobody_is_sent_elsewhere_unless_a_selector_is_chosen():
    node = ServedReplica()
    node.produce()
    node.follow(2, 1)
    node.follow(3, 1)
    assert fetched(node.fetch(0, rack_id="rack-2")).preferred_read_replica == -1


def throttled_leader() -> ServedReplica:
    """Give a leader of two that are in sync and broker 3, which has just had a batch too much."""
    node = ServedReplica(isr=(1, 2))
    for _ in range(2):
        node.produce(acks=1)
    node.throttles.leader.rate.limit_per_second = 1
    node.set_topic("leader.replication.throttled.replicas", "0:1")
    assert fetched(node.follow(3, 0)).records
    return node


def test_a_throttled_replica_out_of_sync_waits_until_the_rate_allows_for_it():
    node = throttled_leader()
    assert not fetched(node.follow(3, 0)).records
    waits = node.follow(3, 0, wait_ms=500)
    node.produce(acks=1)  # which is nothing to it
    node.loop.advance(499)
    assert waits.answer is None
    node.throttles.leader.rate.limit_per_second = 1_000_000
    node.loop.advance(1)
    assert fetched(waits).records


def test_replicas_in_sync_and_consumers_are_never_throttled():
    node = throttled_leader()
    assert fetched(node.follow(2, 0)).records
    node.partition.log.advance_high_watermark(2)
    assert fetched(node.fetch(0)).records


def test_only_the_replicas_a_topic_names_are_throttled():
    node = throttled_leader()
    for named in ("0:2", ""):
        node.set_topic("leader.replication.throttled.replicas", named)
        assert fetched(node.follow(3, 0)).records
    node.set_topic("leader.replication.throttled.replicas", "*")
    assert not fetched(node.follow(3, 0)).records


def test_a_throttled_replica_that_asks_is_heard_of_all_the_same():
    node = throttled_leader()
    node.follow(3, 2)
    assert node.isr_changes  # it has everything, and joins


def test_a_produce_is_answered_when_the_follower_it_waited_for_is_gone():
    """Nothing else happens: its producer sends nothing before this is answered."""
    node = ServedReplica(isr=(1, 2))
    node.follow(3, 0)
    node.partition.leader.isr.abandon()  # refused: it is caught up, and not in sync
    waits = node.produce()
    node.follow(2, 1)
    node.partitions.reconsider()
    assert waits.answer is None
    node.replay(BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=epoch_of(3), fenced=1))
    node.partitions.reconsider()
    assert produced(waits) == (0, 0)
