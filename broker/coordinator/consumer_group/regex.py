"""Subscriptions to all topics whose names match a pattern, which the coordinator evaluates.

The patterns are RE2's, as in Kafka: matching takes time linear in the name for every pattern, and
bounded memory. A pattern must match the whole name. Compiled patterns are cached, because groups
subscribe to the same pattern again and again.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import re2

from common.kafka.errors import ErrorCode, KafkaError

MAX_PATTERN_BYTES = 4_096
"""The longest pattern: a topic's name has at most 249 bytes, and long patterns compile slowly."""

MAX_PROGRAM_BYTES = 1 << 20
"""RE2's memory for one pattern: a counted repetition is a short text and a large program."""

KEPT_PATTERNS = 1_000

NAMES_AT_ONCE = 1_000
STEPS_AT_ONCE = 20_000
"""Names times instructions per `advance`: a few milliseconds for names of ordinary length."""


@dataclass(frozen=True, slots=True)
class ResolvedRegex:
    """The topics that matched a pattern when it was evaluated."""

    topics: frozenset[str]
    version: int = 0
    timestamp_ms: int = 0


@lru_cache(KEPT_PATTERNS)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.max_mem = MAX_PROGRAM_BYTES
    options.log_errors = False
    return re2.compile(pattern, options)


def compiled(pattern: str) -> Any:
    """Compile a pattern; raise INVALID_REGULAR_EXPRESSION."""
    if len(pattern.encode()) > MAX_PATTERN_BYTES:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex has more than {MAX_PATTERN_BYTES} bytes.",
        )
    try:
        return _compiled(pattern)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else error.args[0]
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {reason}.",
        ) from error


def _always(name: str) -> bool:
    return True


class Matching:
    """Finds the names that match a whole pattern, a bounded number of names per `advance`.

    A name that is not allowed is left out, so that a pattern tells no secret names.
    A large pattern takes about 15 ns per instruction and character of a name, a small one a few
    microseconds per name; the number of names follows from that.
    """

    def __init__(
        self, pattern: str, names: Iterable[str], is_allowed: Callable[[str], bool] = _always
    ) -> None:
        regexp = compiled(pattern)
        self._is_allowed = is_allowed
        self._matches = regexp.fullmatch
        self._names_at_once = max(1, min(NAMES_AT_ONCE, STEPS_AT_ONCE // regexp.programsize))
        self._names = iter(list(names))
        self._found: list[str] = []

    def advance(self) -> frozenset[str] | None:
        """Match the next names; return all matches after the last name, else None."""
        names = list(islice(self._names, self._names_at_once))
        self._found += filter(self._is_allowed, filter(self._matches, names))
        return None if len(names) == self._names_at_once else frozenset(self._found)
