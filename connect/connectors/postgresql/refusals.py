"""Changes and tables that cannot become records: `event.processing.failure.handling.mode`.

In the mode `set_aside` a table with such a change has no more records, so that the topic ends at a
known change and has no hole; the other tables go on. Only a new snapshot, after the connector's
offsets were reset, takes the table up again. Therefore the tables that are set aside are part of
every offset. The last table that is left is not set aside: the task fails instead. Does no IO.
"""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from millstream.connect import ConnectException, DataException
from millstream.connect.connectors import TaskMetric

log = logging.getLogger(__name__)

FIELD: Final = "set_aside"
"""The field of an offset: the tables that are set aside and why, as JSON."""
MODES: Final = ("set_aside", "fail", "warn", "skip")
_SHOWN: Final = 300
_PREFIX: Final = "postgres_source_task"


class Refusals:
    """Owns the tables that are set aside, and the number of skipped changes."""

    def __init__(self, mode: str, offset: Mapping[str, Any]) -> None:
        self._mode = mode
        self._aside: dict[str, str] = json.loads(offset.get(FIELD) or "{}")
        self._captured: frozenset[str] = frozenset()
        self._count = 0
        self._last = ""

    def capture(self, tables: Sequence[str]) -> None:
        """Store which tables are captured, as `schema.table`."""
        self._captured = frozenset(tables)

    def begin_again(self) -> None:
        """Take up all tables, because a snapshot of all of them begins."""
        self._aside = {}

    def is_aside(self, table: str) -> bool:
        return table in self._aside

    @property
    def offset(self) -> dict[str, str]:
        """The part of every offset that says which tables are set aside."""
        return {FIELD: json.dumps(self._aside, sort_keys=True)} if self._aside else {}

    def is_in(self, offset: Mapping[str, Any] | None) -> bool:
        """Return whether an offset names the tables that are set aside."""
        return (offset or {}).get(FIELD) == self.offset.get(FIELD)

    def refuse(self, error: DataException, table: str) -> None:
        """Skip a change, or set its table aside. Raise DataException if the task must fail."""
        if self._is_set_aside(error, table):
            return
        if self._mode not in ("warn", "skip"):
            raise DataException(
                f"{error}. (event.processing.failure.handling.mode=warn or skip skips such a "
                "change.)"
            ) from error
        self._count += 1
        self._last = str(error)
        log.log(
            logging.WARNING if self._mode == "warn" else logging.DEBUG,
            "change is skipped reason=%s",
            error,
        )

    def refuse_table(self, error: ConnectException, table: str) -> None:
        """Set a table aside that has no schema or key. Raise the error if the task must fail."""
        if not self._is_set_aside(error, table):
            raise error

    def _is_set_aside(self, error: ConnectException, table: str) -> bool:
        if self._mode != "set_aside" or not self._captured - self._aside.keys() - {table}:
            return False
        self._aside[table] = str(error)[:_SHOWN]
        log.error("table is set aside, the others go on table=%s reason=%s", table, error)
        return True

    def note(self) -> str | None:
        notes: list[str] = []
        if self._aside:
            reasons = "; ".join(f"{table} ({why})" for table, why in sorted(self._aside.items()))
            notes.append(
                f"Tables are set aside and have no more records, the others go on: {reasons}. "
                "When the cause is gone, reset the connector's offsets for a new snapshot. "
                "(event.processing.failure.handling.mode)"
            )
        if self._count:
            notes.append(f"{self._count} changes were skipped, the last one: {self._last}.")
        return " ".join(notes) or None

    def metrics(self) -> Iterator[TaskMetric]:
        yield TaskMetric(f"{_PREFIX}_skipped_changes_total", {}, self._count)
        for table in tuple(self._aside):
            yield TaskMetric(f"{_PREFIX}_table_set_aside", {"table": table}, 1)
