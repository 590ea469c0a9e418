"""Topics as group requests name them: by name, or by id from the versions that know ids."""

from typing import Protocol

from broker.metadata.image import MetadataImage, TopicImage


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
