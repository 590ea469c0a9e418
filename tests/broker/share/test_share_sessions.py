"""Share sessions: their epochs, what an answer has to have, their limit, and their end."""

import pytest

from broker.share import session_cache
from broker.share.session import MAX_EPOCH, SessionKey, ShareSession
from broker.share.session_cache import ShareSessionCache
from common.kafka.errors import ErrorCode, KafkaError

TOPIC = bytes(16)
ANN, BEN = SessionKey("g", "ann"), SessionKey("g", "ben")


def keys(*partitions: int) -> list[tuple[bytes, int]]:
    return [(TOPIC, partition) for partition in partitions]


def code_of(action) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        action()
    return caught.value.code


def test_the_epoch_grows_with_each_request_and_skips_zero():
    cache = ShareSessionCache(10)
    session = cache.open(ANN, keys(0), "connection")
    assert cache.resume(ANN, 1) is session
    assert cache.resume(ANN, 2) is session
    session.epoch = MAX_EPOCH
    cache.resume(ANN, MAX_EPOCH)
    assert session.epoch == 1


@pytest.mark.parametrize("epoch", [0, 2, 7, -2, MAX_EPOCH])
def test_a_wrong_epoch_is_refused_and_the_session_goes_on(epoch: int):
    cache = ShareSessionCache(10)
    session = cache.open(ANN, keys(0), "connection")
    assert code_of(lambda: cache.resume(ANN, epoch)) == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert cache.resume(ANN, 1) is session


def test_a_member_without_a_session_is_refused():
    cache = ShareSessionCache(10)
    cache.open(ANN, keys(0), "connection")
    for epoch in (1, -1):
        assert code_of(lambda epoch=epoch: cache.resume(BEN, epoch)) == (
            ErrorCode.SHARE_SESSION_NOT_FOUND
        )


def test_the_last_request_of_a_session_needs_no_epoch():
    cache = ShareSessionCache(10)
    session = cache.open(ANN, keys(0), "connection")
    assert cache.resume(ANN, -1) is session
    assert cache.close(ANN) is session
    assert cache.close(ANN) is None


def test_there_are_at_most_as_many_sessions_as_allowed():
    cache = ShareSessionCache(2)
    cache.open(ANN, keys(0), "1")
    cache.open(BEN, keys(0), "2")
    third = SessionKey("g", "third")
    refusal = code_of(lambda: cache.open(third, keys(0), "3"))
    assert refusal == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert len(cache) == 2
    cache.open(ANN, keys(1), "1")  # A member's second session replaces its first one.
    cache.close(BEN)
    cache.open(third, keys(0), "3")


def test_the_sessions_of_a_connection_end_with_it():
    cache = ShareSessionCache(10)
    cache.open(ANN, keys(0), "1")
    cache.open(BEN, keys(0), "2")
    cache.open(SessionKey("h", "ann"), keys(0), "1")
    assert [session.key for session in cache.close_all_of("1")] == [ANN, SessionKey("h", "ann")]
    assert cache.has_members("g")
    assert not cache.has_members("h")
    assert cache.close_all_of("1") == []
    assert cache.eviction_count == 2


def test_a_session_that_was_opened_again_elsewhere_outlives_its_old_connection():
    cache = ShareSessionCache(10)
    cache.open(ANN, keys(0), "1")
    session = cache.open(ANN, keys(0), "2")
    assert cache.close_all_of("1") == []
    assert cache.find(ANN) is session


def test_a_request_names_only_the_differences():
    cache = ShareSessionCache(10)
    session = cache.open(ANN, keys(0, 1), "1")
    cache.update(session, keys(2, 1), keys(0, 9))
    assert list(session.partitions) == keys(1, 2)
    assert cache.partition_count == 2


def test_a_session_of_too_many_partitions_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(session_cache, "MAX_PARTITIONS", 3)
    cache = ShareSessionCache(10)
    assert code_of(lambda: cache.open(ANN, keys(*range(7)), "1")) == ErrorCode.INVALID_REQUEST
    assert len(cache) == 0
    session = cache.open(ANN, keys(0, 1, 2), "1")
    assert code_of(lambda: cache.update(session, keys(3), ())) == ErrorCode.INVALID_REQUEST
    assert list(session.partitions) == keys(0, 1, 2)
    cache.update(session, keys(3), keys(0))
    assert list(session.partitions) == keys(1, 2, 3)


def test_each_partition_is_the_first_one_at_times():
    session = ShareSession(ANN, "1")
    session.update(keys(0, 1, 2), ())
    assert session.rotated(0) == keys(0, 1, 2)
    assert session.rotated(1) == keys(1, 2, 0)
    assert session.rotated(3) == keys(0, 1, 2)
    assert ShareSession(BEN, "1").rotated(4) == []


def test_an_answer_leaves_out_partitions_without_news():
    session = ShareSession(ANN, "1")
    session.update(keys(0, 1), ())
    zero, one = keys(0, 1)
    for partition in (zero, one):
        assert session.note_answer(partition, has_records=False, has_error=False)
        assert not session.note_answer(partition, has_records=False, has_error=False)
    assert session.note_answer(zero, has_records=True, has_error=False)
    assert list(session.partitions) == [one, zero]  # It gave records, so others come first.


def test_an_error_is_answered_each_time_and_its_end_once():
    session = ShareSession(ANN, "1")
    session.update(keys(0), ())
    (zero,) = keys(0)
    session.note_answer(zero, has_records=False, has_error=False)
    assert session.note_answer(zero, has_records=False, has_error=True)
    assert session.note_answer(zero, has_records=False, has_error=True)
    assert session.note_answer(zero, has_records=False, has_error=False)
    assert not session.note_answer(zero, has_records=False, has_error=False)
