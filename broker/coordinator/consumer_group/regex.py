"""Subscriptions to all topics whose names match a pattern, evaluated by the coordinator.

The patterns are RE2's, as in Kafka: matched in time linear in the name, whatever the pattern, and
with bounded memory. A name matches as a whole. What is compiled is kept: groups subscribe to the
same pattern again and again.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import re2

from broker.errors import ErrorCode, KafkaError

MAX_PATTERN_BYTES = 4_096
"""No topic has a name of more than 249 bytes; compiling takes time by the length of a pattern."""

MAX_PROGRAM_BYTES = 1 << 20
"""What RE2 may keep for one pattern: a counted repetition is a short text and a large program."""

KEPT_PATTERNS = 1_000

NAMES_AT_ONCE = 1_000
STEPS_AT_ONCE = 20_000
"""Names times instructions: some milliseconds for names of ordinary length."""


@dataclass(frozen=True, slots=True)
class ResolvedRegex:
    """What a pattern stood for when it was looked at."""

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
    """Compile a pattern; raises INVALID_REGULAR_EXPRESSION."""
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


class Matching:
    """Finds the names that match a pattern as a whole, some at a time.

    A large pattern takes some 15 ns for each of its instructions and each character of a name, a
    small one some microseconds a name: so many names are looked at in one `advance`.
    """

    def __init__(self, pattern: str, names: Iterable[str]) -> None:
        regexp = compiled(pattern)
        self._matches = regexp.fullmatch
        self._names_at_once = max(1, min(NAMES_AT_ONCE, STEPS_AT_ONCE // regexp.programsize))
        self._names = iter(list(names))
        self._found: list[str] = []

    def advance(self) -> frozenset[str] | None:
        """Look at some more names; return all that match once there are no more."""
        names = list(islice(self._names, self._names_at_once))
        self._found += filter(self._matches, names)
        return None if len(names) == self._names_at_once else frozenset(self._found)
