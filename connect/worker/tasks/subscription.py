"""The topics that a sink's consumer reads: named topics, or those that match `topics.regex`.

The pattern is a Java pattern. librdkafka would read it as a POSIX pattern, where `\\d` and
`(?!...)` have another meaning or none. So this module matches the names of the topics itself, and
repeats that for new topics. As in Kafka's consumer, a pattern does not match internal topics.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException

from common.process.patterns import Pattern
from connect.java.patterns import java_pattern

log = logging.getLogger(__name__)

_ASKING_SECONDS: Final = 5.0
_LOOK_MS: Final = 30_000
_LOOK_FOR_ANY_MS: Final = 1_000
_INTERNAL: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})

Subscribe = Callable[[list[str]], None]


class Subscription:
    """Owns the list of subscribed topics. Used only by the task's thread."""

    def __init__(self, names: list[str], pattern: str | None = None) -> None:
        """Raises re.error for an invalid pattern; ignores the pattern when there are names."""
        self._names = list(names)
        self._pattern: Pattern | None = None
        if not names and pattern is not None:
            self._pattern = java_pattern(pattern)
        self._next_look_ms = 0

    def start(self, subscribe: Subscribe) -> None:
        """Subscribe to the named topics."""
        if self._names:
            subscribe(self._names)

    def look(self, consumer: Consumer, subscribe: Subscribe, now_ms: int) -> None:
        """If it is time, look for matching topics, and subscribe again if they have changed."""
        if self._pattern is None or now_ms < self._next_look_ms:
            return
        try:
            topics = consumer.list_topics(timeout=_ASKING_SECONDS).topics
        except KafkaException as error:
            log.warning("topics cannot be asked for now error=%s", error)
            return
        found = matching(self._pattern, topics)
        self._next_look_ms = now_ms + (_LOOK_MS if found else _LOOK_FOR_ANY_MS)
        if found != self._names:
            log.info("topics match pattern=%s topics=%s", self._pattern.pattern, found)
            self._names = found
            if found:
                subscribe(found)
            else:
                consumer.unsubscribe()

    def note(self) -> str | None:
        """Return a note for the user when no topic matches, else None."""
        if self._names or self._pattern is None:
            return None
        return f"No topic matches topics.regex={self._pattern.pattern} yet."


def matching(pattern: Pattern, topics: Mapping[str, Any]) -> list[str]:
    """Return the existing topics whose whole name matches, sorted."""
    return [
        name
        for name, topic in sorted(topics.items())
        if pattern.fullmatch(name) and name not in _INTERNAL and topic.error is None
    ]
