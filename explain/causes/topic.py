"""Why there is no such topic or partition, and which records a topic refuses."""

from collections.abc import Iterator
from typing import NamedTuple

from explain.causes.cause import Figures, problem
from explain.facts import Topic


class TopicCase(NamedTuple):
    """A topic, and what is asked about it."""

    topic: Topic
    number: int | None = None
    """The partition that is asked about."""
    partition_count: int | None = None
    record_bytes: int | None = None
    """The size of a record that is to be written."""


def _missing(case: TopicCase) -> Iterator[Figures]:
    if not case.topic.exists:
        similar = case.topic.similar
        yield {
            "topic": case.topic.name,
            "similar": f" Similar: {', '.join(similar)}." if similar else "",
        }


def _no_partition(case: TopicCase) -> Iterator[Figures]:
    count, number = case.partition_count, case.number
    if count is not None and number is not None and not 0 <= number < count:
        yield {"topic": case.topic.name, "number": number, "count": count}


def _too_large(case: TopicCase) -> Iterator[Figures]:
    limit = case.topic.number("max.message.bytes")
    if case.record_bytes is not None and limit is not None and case.record_bytes > limit:
        yield {"topic": case.topic.name, "size": case.record_bytes, "limit": limit}


TOPIC = (
    problem(
        "topic-missing",
        _missing,
        "There is no topic {topic}, or this user may not know of it.{similar}",
        "Create it with `millstream topics --create --topic {topic}`, or correct the name.",
    ),
    problem(
        "topic-partition-missing",
        _no_partition,
        "Topic {topic} has no partition {number}: it has {count:partition}, from 0 on.",
        "Correct the number, or add partitions with `millstream topics --alter --partitions`.",
    ),
    problem(
        "topic-record-too-large",
        _too_large,
        "A record of {size:byte} does not fit into topic {topic}: max.message.bytes, which is for "
        "a whole batch after compression, is {limit:byte}. Producers get MESSAGE_TOO_LARGE.",
        "Send less or compress, or raise max.message.bytes of the topic and max.request.size of "
        "the producer.",
    ),
)
