"""Incremental fetch sessions: each end for itself, and both together."""

from collections.abc import Iterable
from itertools import count
from random import Random

import pytest

from broker.replication.fetch_session import session_cache
from broker.replication.fetch_session.fetcher_session import FetcherSession
from broker.replication.fetch_session.session import MAX_EPOCH, FetchSession, next_epoch
from broker.replication.fetch_session.session_cache import FetchSessionCache
from broker.replication.follower import FetchPosition
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.fetch import EpochEndOffset, FetchPartition, PartitionData

TOPIC = bytes(16)
EVICTION_MS = 100


def key(partition: int) -> tuple[bytes, int]:
    return TOPIC, partition


def at(offset: int) -> FetchPosition:
    return FetchPosition(5, offset, 5, 0)


def asked_for(*partitions: int) -> list[tuple[tuple[bytes, int], FetchPartition]]:
    return [(key(partition), FetchPartition(partition=partition)) for partition in partitions]


def cache_of(slots: int = 2) -> FetchSessionCache:
    return FetchSessionCache(count(1).__next__, slots=slots, min_eviction_ms=EVICTION_MS)


def open_session(
    cache: FetchSessionCache, size: int = 1, now_ms: int = 0, *, is_follower: bool = False
) -> int:
    return cache.open(
        asked_for(*range(size)),
        (),
        owner="somebody",
        is_privileged=is_follower,
        uses_topic_ids=True,
        now_ms=now_ms,
    )


def resume(cache: FetchSessionCache, session_id: int, epoch: int, **more) -> FetchSession | None:
    options = {"owner": "somebody", "uses_topic_ids": True, **more}
    return cache.resume(session_id, epoch, **options)


def touch(cache: FetchSessionCache, session_id: int, now_ms: int) -> None:
    session = cache._sessions[session_id]
    assert cache.update(session, (), (), now_ms)


# --- the fetcher's side ---


def test_the_first_request_names_all_and_later_ones_what_is_different():
    session = FetcherSession()
    session.want(key(0), at(0))
    session.want(key(1), at(0))
    assert session.next_request() == (0, 0, [(key(0), at(0)), (key(1), at(0))], [])
    assert session.handle_answer(0, 7, [key(0), key(1)])
    assert session.next_request() == (7, 1, [], [])
    session.handle_answer(0, 7, [])
    session.want(key(1), at(3))
    session.want(key(2), at(0))
    session.drop(key(0))
    assert session.next_request() == (7, 2, [(key(1), at(3)), (key(2), at(0))], [key(0)])


def test_what_is_taken_back_before_it_was_sent_is_not_sent():
    session = FetcherSession()
    session.want(key(0), at(0))
    session.next_request()
    session.handle_answer(0, 7, [key(0)])
    session.drop(key(0))
    session.want(key(0), at(0))
    session.want(key(1), at(0))
    session.drop(key(1))
    assert session.next_request() == (7, 1, [], [])


@pytest.mark.parametrize(
    ("error", "next_id"),
    [(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0), (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 7)],
)
def test_after_an_error_all_is_asked_for_again(error, next_id):
    session = FetcherSession()
    session.want(key(0), at(0))
    session.next_request()
    session.handle_answer(0, 7, [key(0)])
    session.next_request()
    assert not session.handle_answer(error, 0, [])
    assert session.next_request() == (next_id, 0, [(key(0), at(0))], [])


def test_after_a_lost_answer_the_old_session_is_closed():
    session = FetcherSession()
    session.want(key(0), at(0))
    session.next_request()
    session.handle_answer(0, 7, [key(0)])
    session.next_request()
    session.handle_no_answer()
    assert session.next_request()[:2] == (7, 0)


def test_answers_that_do_not_fit_the_question_are_dropped():
    session = FetcherSession()
    session.want(key(0), at(0))
    session.next_request()
    assert not session.handle_answer(0, 7, [])
    assert session.next_request()[:2] == (0, 0)
    assert session.handle_answer(0, 7, [key(0)])
    session.next_request()
    assert not session.handle_answer(0, 7, [key(9)])
    assert session.next_request()[:2] == (7, 0)


def test_without_a_session_every_request_is_full():
    session = FetcherSession()
    session.want(key(0), at(0))
    session.next_request()
    assert session.handle_answer(0, 0, [key(0)])
    assert session.next_request()[:2] == (0, 0)


def test_after_the_largest_epoch_comes_one():
    assert [next_epoch(epoch) for epoch in (-1, 0, 1, MAX_EPOCH)] == [-1, 1, 2, 1]


# --- the server's side ---


def test_a_session_goes_on_with_the_epoch_that_comes_next():
    cache = cache_of()
    session_id = open_session(cache)
    session = resume(cache, session_id, 1)
    assert cache.update(session, asked_for(1), [], 0)
    assert [k for k, _ in session.asked()] == [key(0), key(1)]
    with pytest.raises(KafkaError) as again:
        resume(cache, session_id, 1)
    assert again.value.code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert resume(cache, session_id, 2) is session


@pytest.mark.parametrize(
    ("session_id", "more", "code"),
    [
        (99, {}, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (1, {"owner": "somebody else"}, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (1, {"uses_topic_ids": False}, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
    ],
)
def test_a_session_that_is_not_ones_own_is_refused(session_id, more, code):
    cache = cache_of()
    open_session(cache)
    with pytest.raises(KafkaError) as refused:
        resume(cache, session_id, 1, **more)
    assert refused.value.code == code
    assert resume(cache, 1, 0, owner="somebody else") is None
    assert len(cache) == 1


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_full_request_closes_the_session_it_names(epoch):
    cache = cache_of()
    session_id = open_session(cache)
    assert resume(cache, session_id, epoch) is None
    assert len(cache) == 0


def test_a_session_of_nothing_is_closed():
    cache = cache_of()
    session = resume(cache, open_session(cache), 1)
    assert not cache.update(session, (), [key(0)], 0)
    assert len(cache) == 0
    assert cache.open((), (), owner=1, is_privileged=True, uses_topic_ids=True, now_ms=0) == 0


def answer(high_watermark: int = 5, **more) -> PartitionData:
    return PartitionData(high_watermark=high_watermark, log_start_offset=0, **more)


def test_an_answer_has_what_is_new_only():
    cache = cache_of()
    session = resume(cache, open_session(cache, size=3), 1)

    def told(*answers: PartitionData) -> list[int]:
        return [k[1] for k, _ in session.select(zip(map(key, range(3)), answers, strict=True))]

    assert told(answer(), answer(), answer()) == [0, 1, 2]
    assert told(answer(), answer(), answer()) == []
    assert told(answer(6), answer(records=b"x"), answer(preferred_read_replica=2)) == [0, 1, 2]
    diverging = answer(6, diverging_epoch=EpochEndOffset(epoch=1, end_offset=1))
    assert told(diverging, answer(), answer()) == [0]
    failed = PartitionData(error_code=6, high_watermark=-1, log_start_offset=0)
    assert told(answer(6), failed, answer()) == [1]
    assert told(answer(6), failed, answer()) == [1]
    assert told(answer(6), answer(), answer()) == [1]


def test_partitions_that_had_records_go_to_the_end_of_the_queue():
    session = resume(cache := cache_of(), open_session(cache, size=3), 1)
    session.select([(key(0), answer(records=b"x")), (key(1), answer())])
    assert [k[1] for k, _ in session.asked()] == [1, 2, 0]


def test_no_room_leaves_the_fetcher_with_full_requests():
    cache = cache_of()
    assert [open_session(cache, now_ms=n) for n in range(3)] == [1, 2, 0]


def test_no_session_becomes_so_large_that_a_step_with_it_is_long(monkeypatch):
    monkeypatch.setattr(session_cache, "MAX_PARTITIONS", 3)
    cache = cache_of()
    assert open_session(cache, size=4) == 0
    for more in (asked_for(3), asked_for(*range(4))):
        session = resume(cache, open_session(cache, size=3), 1)
        with pytest.raises(KafkaError) as refused:
            cache.update(session, more, [], 0)
        assert refused.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        assert len(cache) == 0


def test_a_session_that_was_not_used_for_long_makes_room():
    cache = cache_of()
    for session_id in (open_session(cache), open_session(cache)):
        touch(cache, session_id, 50)
    touch(cache, 1, 60)
    assert open_session(cache, now_ms=151) == 3
    assert list(cache._sessions) == [1, 3]
    assert cache.eviction_count == 1


def test_a_follower_takes_a_consumers_place_and_no_consumer_a_followers():
    cache = cache_of()
    open_session(cache, size=5)
    open_session(cache, size=3)
    assert open_session(cache, is_follower=True) == 3
    assert list(cache._sessions) == [1, 3]  # the smaller one went
    assert open_session(cache, is_follower=True) == 4
    assert open_session(cache, size=99) == 0
    assert open_session(cache, size=99, is_follower=True) == 0


def test_of_old_sessions_the_smallest_goes_for_a_larger_one():
    cache = cache_of()
    open_session(cache, size=4)
    open_session(cache, size=3)
    for session_id in (1, 2):
        touch(cache, session_id, EVICTION_MS + 1)
    assert open_session(cache, size=3, now_ms=EVICTION_MS + 1) == 0
    assert open_session(cache, size=4, now_ms=EVICTION_MS + 1) == 3
    assert list(cache._sessions) == [1, 3]


# --- both ends ---


class Server:
    """What a leader does with a Fetch, down to the partitions it is asked for."""

    def __init__(self, cache: FetchSessionCache) -> None:
        self.cache = cache
        self.high_watermarks: dict[tuple[bytes, int], int] = {}

    def answer(self, request, now_ms: int) -> tuple[int, int, dict]:
        session_id, epoch, to_send, to_forget = request
        asked = [(k, FetchPartition(fetch_offset=p.fetch_offset)) for k, p in to_send]
        try:
            session = resume(self.cache, session_id, epoch)
        except KafkaError as error:
            return error.code, 0, {}
        if session is None:
            answers = self.read(asked)
            granted = self.cache.open(
                asked,
                answers,
                owner="somebody",
                is_privileged=True,
                uses_topic_ids=True,
                now_ms=now_ms,
            )
            return 0, granted, dict(answers)
        if not self.cache.update(session, asked, to_forget, now_ms):
            return 0, 0, {}
        return 0, session_id, dict(session.select(self.read(session.asked())))

    def read(self, asked: Iterable) -> list:
        # The high watermark stands for the answer, the position that was asked for its start.
        return [
            (
                k,
                PartitionData(
                    high_watermark=self.high_watermarks.get(k, 0), log_start_offset=p.fetch_offset
                ),
            )
            for k, p in asked
        ]


@pytest.mark.parametrize("seed", range(10))
def test_what_the_fetcher_knows_is_what_full_requests_would_say(seed):
    random = Random(seed)
    fetcher, cache = FetcherSession(), cache_of(slots=3)
    server = Server(cache)
    known: dict[tuple[bytes, int], tuple[int, int]] = {}
    incremental_count = 0
    for now_ms in range(400):
        partition = key(random.randrange(6))
        match random.randrange(10):
            case 0 | 1 | 2:
                fetcher.want(partition, at(random.randrange(4)))
            case 3:
                fetcher.drop(partition)
                known.pop(partition, None)
            case 4 | 5:
                server.high_watermarks[partition] = now_ms
            case 6 if random.random() < 0.3:
                cache._sessions.clear()
        if not fetcher.wanted:
            continue
        request = fetcher.next_request()
        error, session_id, answers = server.answer(request, now_ms)
        if random.random() < 0.1:
            fetcher.handle_no_answer()
            continue
        if not fetcher.handle_answer(error, session_id, answers):
            continue
        incremental_count += request.session_epoch > 0
        for k, told in answers.items():
            known[k] = (told.high_watermark, told.log_start_offset)
        assert known == {
            k: (server.high_watermarks.get(k, 0), position.fetch_offset)
            for k, position in fetcher.wanted.items()
        }
    assert incremental_count > 50
