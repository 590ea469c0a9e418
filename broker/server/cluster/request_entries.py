"""The entries of a request: those that are repeated, and topics that have only a name or an id.

Kafka answers a repeated entry once.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Protocol, TypeVar

from broker.metadata.image import MetadataImage, TopicImage

T = TypeVar("T")


def distinct(items: Iterable[T], key: Callable[[T], Hashable]) -> list[T]:
    """Return the first item of every key."""
    first_of: dict[Hashable, T] = {}
    for item in items:
        first_of.setdefault(key(item), item)
    return list(first_of.values())


def merged(
    items: Iterable[T], key: Callable[[T], Hashable], merge: Callable[[T, T], object]
) -> list[T]:
    """Return the first item of every key; `merge` adds each later item to the first."""
    first_of: dict[Hashable, T] = {}
    for item in items:
        first = first_of.setdefault(key(item), item)
        if first is not item:
            merge(first, item)
    return list(first_of.values())


class TopicReference(Protocol):
    """A topic in a request or a response that has a field for each."""

    name: str
    topic_id: bytes


def resolve_topic(
    cluster: MetadataImage, topic: TopicReference, *, by_id: bool
) -> TopicImage | None:
    """Return the topic, and fill in the name or id that the reference lacks; None if unknown."""
    topics = cluster.topics
    image = topics.by_id.get(topic.topic_id) if by_id else topics.by_name.get(topic.name)
    if image is None:
        if by_id:
            topic.name = ""
        return None
    topic.name = image.name
    topic.topic_id = image.topic_id
    return image
