"""The consumer group and the topics of this program, with its default name."""

from common.processing.declared import Declared
from streams.settings import Settings
from streams.topics import wanted_topics


def declared() -> list[Declared]:
    """Return the group and its topics."""
    group = Settings().application_id
    topics = [topic.name for topic in wanted_topics(group) if topic.is_counted]
    return [Declared(group, tuple(topics))]
