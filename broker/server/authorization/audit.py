"""The audit log: each decision about a request, as far as there is room for it.

The log's name is `millstream.authorizer`: a denial is INFO, a permission DEBUG, as with Kafka's
`kafka.authorizer.logger`. Names are written with `repr`, so that no name can forge a line, and
shortened. So that denials fill neither the log nor the time of others, of one principal
MAX_LINES denials in a minute are written, and all are counted.
"""

import logging
from collections import Counter
from typing import NamedTuple

from broker.model import shortened
from broker.security.authorizer import Requester
from broker.server.clock import Clock
from common.kafka.acls import AclOperation, ResourceType

log = logging.getLogger("millstream.authorizer")

MAX_LINES = 100
WINDOW_MS = 60_000
MAX_PRINCIPALS = 1_000
"""So many principals have lines of their own in one window; the others share one limit."""


class Decided(NamedTuple):
    """What was asked, and whether it was allowed."""

    is_allowed: bool
    requester: Requester
    operation: AclOperation
    kind: ResourceType
    name: str
    api: str


class Audit:
    """Owns the number of denials, and how many of each principal were written lately."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ends_at_ms = 0
        self._lines: Counter[str] = Counter()
        self.denials = 0

    @property
    def notes_permissions(self) -> bool:
        """Whether permissions are written too: they are the most frequent by far."""
        return log.isEnabledFor(logging.DEBUG)

    def note(self, decided: Decided) -> None:
        """Count a denial, and write a decision if its level is on and there is room."""
        if decided.is_allowed:
            _write(logging.DEBUG, "allowed", decided)
            return
        self.denials += 1
        if log.isEnabledFor(logging.INFO):
            self._note_denial(decided)

    def _note_denial(self, decided: Decided) -> None:
        now_ms = self._clock.now_ms()
        if now_ms >= self._ends_at_ms:
            self._ends_at_ms = now_ms + WINDOW_MS
            self._lines.clear()
        principal = decided.requester.principal
        key = principal if principal in self._lines or len(self._lines) < MAX_PRINCIPALS else ""
        self._lines[key] += 1
        if self._lines[key] <= MAX_LINES:
            _write(logging.INFO, "denied", decided)
        elif self._lines[key] == MAX_LINES + 1:
            log.info(
                "denied principal=%s more than %d times: the rest of this minute is only counted",
                shortened(principal),
                MAX_LINES,
            )


def _write(level: int, event: str, decided: Decided) -> None:
    log.log(
        level,
        "%s principal=%s host=%s operation=%s resource=%s:%s api=%s",
        event,
        shortened(decided.requester.principal),
        decided.requester.host,
        decided.operation.name,
        decided.kind.name,
        shortened(decided.name),
        decided.api,
    )
