"""What of a follower's session is at rest costs its leader next to nothing, and changes nothing."""

from random import Random
from typing import Any

import pytest

from broker.server.handlers.fetch import fetch as fetch_handler
from broker.server.handlers.fetch.fetch_read import FetchRead
from broker.server.replication.resting import LOOK_AT_ALL_MS
from common.kafka.errors import ErrorCode
from common.kafka.protocol.records.metadata import RegisterBrokerRecord
from tests.lib.served_replica import ServedReplica, epoch_of, fetch_error, fetched

SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


class Session:
    """The session of a follower that has fetched once."""

    def __init__(self, node: ServedReplica, broker_id: int = 2, offset: int = 0) -> None:
        self.node, self.broker_id = node, broker_id
        opened = node.follow(broker_id, offset, session_epoch=0)
        self._session_id = opened.answer.session_id
        self._epoch = 0
        self.offset = offset
        self.ask(offset=offset)

    def ask(self, **more: Any) -> Any:
        """Go on with the session, and name its partition only if something is different."""
        self._epoch += 1
        more = {"session_id": self._session_id, "session_epoch": self._epoch, **more}
        if not more.keys() & {"offset", "current_leader_epoch", "log_start_offset"}:
            more.setdefault("request", {})["topics"] = []
        return self.node.follow(self.broker_id, more.pop("offset", self.offset), **more)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Give what was read, a key each time."""
    done: list[object] = []
    answer = FetchRead._answer

    def counted(self: FetchRead, key: Any, wanted: Any) -> Any:
        done.append(key)
        return answer(self, key, wanted)

    monkeypatch.setattr(FetchRead, "_answer", counted)
    return done


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Give what was looked at, a key each time."""
    done: list[object] = []
    run = FetchRead.run

    def counted(self: FetchRead, asked: Any) -> None:
        done.extend(key for key, _ in asked)
        run(self, asked)

    monkeypatch.setattr(FetchRead, "run", counted)
    return done


def resting(node: ServedReplica) -> Session:
    """Return a session of which nothing is new."""
    session = Session(node)
    session.ask()
    assert list(node.partition.resting) == [session.broker_id]
    return session


def test_what_is_at_rest_is_not_looked_at_for_a_while(looks: list[object]) -> None:
    session = resting(ServedReplica())
    looks.clear()
    for _ in range(3):
        assert session.ask().answer.responses == []
    assert looks == []
    session.node.loop.advance(LOOK_AT_ALL_MS)
    session.ask()
    assert len(looks) == 1


def test_the_rest_of_a_session_that_went_on_elsewhere_is_kept_once() -> None:
    node = ServedReplica()
    for _ in range(3):
        resting(node)
    assert len(node.partition.resting) == 1


def test_who_rests_and_left_the_in_sync_set_asks_to_be_taken_in_again() -> None:
    node = ServedReplica()
    session = resting(node)
    node.change(isr=[1, 3])
    session.ask()
    assert [replica for replica, _ in node.isr_changes[-1].isr] == [1, 2, 3]


def test_what_comes_between_two_steps_of_a_look_at_very_much_wakes_who_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetch_handler, "PARTITIONS_AT_ONCE", -1)
    node = ServedReplica()
    session, walk, left = resting(node), FetchRead.steps, [node.produce]

    def interrupted(self: FetchRead, asked: Any) -> Any:
        yield from walk(self, asked)
        for produce in left[:1]:
            left.clear()
            produce(acks=1)

    monkeypatch.setattr(FetchRead, "steps", interrupted)
    waits = session.ask(wait_ms=500)
    assert waits.answer is None
    node.loop.advance()
    assert waits.answer is not None, "it is read again, step by step"


def test_what_is_at_rest_is_not_read_again(reads: list[object]) -> None:
    session = Session(ServedReplica())
    reads.clear()
    for _ in range(3):
        assert session.ask().answer.responses == []
    assert reads == []


def test_an_append_wakes_who_rests_and_is_read_once(reads: list[object]) -> None:
    session = Session(ServedReplica())
    reads.clear()
    waits = session.ask(wait_ms=500)
    assert waits.answer is None
    session.node.produce()
    session.node.loop.advance()
    assert fetched(waits).records
    assert len(reads) == 1


def test_an_append_wakes_who_rests_also_after_the_high_watermark_moved() -> None:
    node = ServedReplica()
    session = Session(node)
    node.produce()
    session.ask(offset=1)
    session.offset = 1
    waits = session.ask(wait_ms=500)
    node.follow(3, 1)
    assert node.high_watermark == 1
    node.loop.advance()
    assert waits.answer is None
    node.produce()
    node.loop.advance()
    assert fetched(waits).records


def test_who_rests_hears_of_a_high_watermark_and_of_a_log_start_that_moved() -> None:
    node = ServedReplica()
    session = Session(node)
    node.produce()
    session.ask(offset=1)
    assert session.ask().answer.responses == []
    node.follow(3, 1)
    assert fetched(session.ask()).high_watermark == 1
    assert session.ask().answer.responses == []
    node.partitions.delete_records_before(node.partition, 1)
    assert fetched(session.ask()).log_start_offset == 1


def test_who_rests_is_heard_of_and_stays_in_sync() -> None:
    node = ServedReplica()
    session, other = Session(node), Session(node, 3)
    lag_time_ms = node.partition.leader.lag_time_max_ms
    for _ in range(3):
        node.loop.advance(lag_time_ms)
        session.ask()
    node.produce(acks=1)
    now_ms = int(node.loop.now_ms)
    assert node.partition.leader.out_of_sync(now_ms) == [other.broker_id]


def test_who_rests_and_has_been_replaced_is_refused() -> None:
    node = ServedReplica()
    session = resting(node)
    node.replay(
        RegisterBrokerRecord(
            broker_id=2,
            broker_epoch=epoch_of(2) + 1,
            incarnation_id=b"another" * 2 + b"--",
            fenced=False,
        )
    )
    assert fetch_error(session.ask()) == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("change", [{"leader": 2}, {"leader": 1, "isr": [1, 2]}])
def test_who_rests_when_the_leader_epoch_changes_is_told(change: dict[str, Any]) -> None:
    node = ServedReplica()
    session = resting(node)
    node.change(**change)
    told = fetch_error(session.ask())
    assert told in {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH}


def run(seed: int) -> list[object]:
    """Let anything happen to one partition, and tell all that could be seen of it."""
    random, seen = Random(seed), []
    node = ServedReplica(isr=(1, 2) if seed % 2 else (1, 2, 3))
    sessions = [Session(node, 2), Session(node, 3)]
    for _ in range(60):
        session, end = random.choice(sessions), node.partition.log.log_end_offset
        match random.randrange(8):
            case 0:
                node.produce(acks=1)
            case 1:
                session.offset = random.randint(session.offset, end)
                seen.append(session.ask(offset=session.offset).answer)
            case 2 | 3 | 4:
                seen.append(session.ask().answer)
            case 5:
                node.loop.advance(random.choice([1, 10_000, 40_000]))
                node.partition.leader.maybe_shrink_isr(int(node.loop.now_ms))
                node.partitions.look_at_isr(node.partition)
            case 6:
                low = node.partition.log.log_start_offset
                if low < node.high_watermark:
                    node.partitions.delete_records_before(node.partition, low + 1)
            case 7:
                isr = random.choice([[1, 2, 3], [1, 2], [1, 3]])
                node.change(isr=isr)
        seen.append((node.high_watermark, list(node.isr_changes)))
    return seen


@pytest.mark.parametrize("seed", range(40))
def test_all_is_as_if_everything_were_read_each_time(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = run(seed)
    monkeypatch.setattr(FetchRead, "_passes_over", lambda self, key, known, follower: False)
    assert passed == run(seed)


@pytest.mark.parametrize("is_at_rest", [True, False])
@pytest.mark.parametrize("selects_by_rack", [True, False])
def test_followers_hear_of_a_high_watermark_at_once_where_consumers_read_from_them(
    selects_by_rack: bool, is_at_rest: bool
) -> None:
    settings = {"replica.selector.class": SELECTOR} if selects_by_rack else {}
    node = ServedReplica(isr=(1, 2, 3) if is_at_rest else (1, 3), settings=settings)
    node.produce()
    session = Session(node)
    if not is_at_rest:
        node.partition.leader.isr.abandon()  # refused: it is caught up, and not in sync
    assert session.ask(offset=1).answer is not None
    waits = session.ask(offset=1, wait_ms=500)
    node.loop.advance()
    assert waits.answer is None
    node.follow(3, 1)
    assert node.high_watermark == 1
    node.loop.advance()
    if selects_by_rack:
        assert fetched(waits).high_watermark == 1
    else:
        assert waits.answer is None
