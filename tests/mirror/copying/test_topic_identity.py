"""When the id of a topic is asked for before what was read of it is handed on."""

from collections.abc import Iterable

from millstream.mirror import TopicPartition
from mirror.copying.topic_identity import TopicIdentity

AT = TopicPartition("orders", 0)
OTHER = TopicPartition("payments", 0)


def read(*offsets: int, at: TopicPartition = AT) -> Iterable[tuple[TopicPartition, list[int]]]:
    return [(at, [*offsets])]


def proven() -> TopicIdentity:
    identity = TopicIdentity()
    assert identity.doubtful(read(0, 1), 0) == {"orders"}
    identity.proven({"orders"}, 0)
    return identity


def test_what_comes_right_behind_is_of_the_same_topic() -> None:
    identity = proven()
    assert identity.doubtful(read(2, 3), 20) == set()
    assert identity.doubtful(read(4), 40) == set()


def test_after_a_gap_it_may_be_another() -> None:
    assert proven().doubtful(read(2), 21) == {"orders"}


def test_where_offsets_go_back_it_may_be_another() -> None:
    identity = proven()
    assert identity.doubtful(read(2, 0), 1) == {"orders"}


def test_each_topic_is_looked_at_once_a_second_whatever_comes() -> None:
    identity = proven()
    asked = []
    for now_ms in range(10, 3_000, 10):
        if identity.doubtful(read(now_ms), now_ms):
            asked.append(now_ms)
            identity.proven({"orders"}, now_ms)
    assert asked == [1_010, 2_020]


def test_topics_are_told_apart_and_begin_anew() -> None:
    identity = proven()
    assert identity.doubtful([*read(2), *read(0, at=OTHER)], 10) == {"payments"}
    identity.begins_anew("orders")
    assert identity.doubtful(read(0), 15) == {"orders"}
    identity.proven({"orders"}, 15)
    assert identity.doubtful(read(1), 16) == set()
