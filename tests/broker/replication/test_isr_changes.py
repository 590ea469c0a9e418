"""AlterPartition requests: one at a time, until they are answered for certain."""

from broker.replication.isr import IsrChange
from broker.replication.isr_changes import IsrChanges
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import decode_request, encode_request
from common.kafka.protocol.messages.alter_partition import (
    AlterPartitionResponse,
    PartitionResult,
    TopicResult,
)

TOPIC = b"a topic's own id"
CHANGE = IsrChange(leader_epoch=5, partition_epoch=7, isr=((1, 11), (2, -1)), before=frozenset({1}))


def response(*errors: tuple[int, ErrorCode]) -> AlterPartitionResponse:
    results = [PartitionResult(partition_index=index, error_code=code) for index, code in errors]
    return AlterPartitionResponse(topics=[TopicResult(topic_id=TOPIC, partitions=results)])


def sent(*partitions: int, now_ms: int = 0) -> IsrChanges[str]:
    changes: IsrChanges[str] = IsrChanges(request_lifetime_ms=1_000)
    for partition in partitions:
        changes.submit((TOPIC, partition), f"leader {partition}", CHANGE)
    assert changes.next_request(1, 11, now_ms) is not None
    return changes


def test_all_changes_go_in_one_request_and_the_next_waits_for_its_answer():
    changes: IsrChanges[str] = IsrChanges()
    changes.submit((TOPIC, 0), "zero", CHANGE)
    changes.submit((TOPIC, 3), "three", CHANGE)
    request = changes.next_request(1, 11, 0)
    assert (request.broker_id, request.broker_epoch) == (1, 11)
    first, _ = request.topics[0].partitions
    assert (first.leader_epoch, first.partition_epoch) == (5, 7)
    assert [(s.broker_id, s.broker_epoch) for s in first.new_isr_with_epochs] == [(1, 11), (2, -1)]
    changes.submit((TOPIC, 4), "four", CHANGE)
    assert changes.next_request(1, 11, 0) is None
    answers = changes.handle_response(response((0, ErrorCode.NONE), (3, ErrorCode.NONE)), 0)
    assert [leader for leader, _, _ in answers] == ["zero", "three"]
    assert changes.next_request(1, 11, 0).topics[0].partitions[0].partition_index == 4


def test_the_request_can_be_said_in_the_version_that_names_broker_epochs():
    changes: IsrChanges[str] = IsrChanges()
    changes.submit((TOPIC, 0), "zero", CHANGE)
    request = changes.next_request(1, 11, 0)
    frame = encode_request(ApiKey.ALTER_PARTITION, 3, 0, "broker-1", request)
    assert decode_request(frame[4:])[1] == request


def test_what_is_not_answered_is_sent_again_after_a_while():
    changes = sent(0)
    changes.handle_no_answer(100)
    assert changes.next_deadline_ms() == 150
    assert changes.next_request(1, 11, 149) is None
    assert changes.next_request(1, 11, 150) is not None


def test_a_request_that_is_refused_as_a_whole_is_sent_again():
    changes = sent(0)
    refused = AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    assert changes.handle_response(refused, 100) == []
    assert changes.next_request(1, 12, 150) is not None


def test_a_refusal_is_not_believed_while_an_earlier_copy_may_arrive():
    changes = sent(0)
    changes.handle_no_answer(100)
    refusal = response((0, ErrorCode.INELIGIBLE_REPLICA))
    changes.next_request(1, 11, 200)
    assert changes.handle_response(refusal, 999) == []
    changes.next_request(1, 11, 2_000)
    [(leader, change, _)] = changes.handle_response(refusal, 2_000)
    assert (leader, change) == ("leader 0", CHANGE)


def test_a_first_refusal_is_certain():
    changes = sent(0)
    assert len(changes.handle_response(response((0, ErrorCode.INELIGIBLE_REPLICA)), 1)) == 1
    assert changes.next_deadline_ms() == -1


def test_a_newer_change_replaces_the_one_that_is_away():
    changes = sent(0)
    newer = CHANGE._replace(partition_epoch=8)
    changes.submit((TOPIC, 0), "leader 0", newer)
    [(_, answered, _)] = changes.handle_response(response((0, ErrorCode.NONE)), 1)
    assert answered == CHANGE
    assert changes.next_request(1, 11, 1).topics[0].partitions[0].partition_epoch == 8


def test_an_unknown_partition_and_an_answer_to_nothing_are_left_alone():
    changes = sent(0)
    changes.forget((TOPIC, 0))
    assert changes.handle_response(response((9, ErrorCode.NONE)), 1) == []
    assert changes.handle_response(response((0, ErrorCode.NONE)), 1) == []
