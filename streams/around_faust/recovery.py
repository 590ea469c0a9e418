"""Faust's table recovery, without reading changelogs into active tables.

`tables` makes every store equal to its changelog before a record is handled. Faust would read the
same changelogs first, to the last record before their end, and wait for ever: rows are written in
transactions, and the last thing in a partition is the marker of one. Standbys are read as Faust
does it.
"""

from typing import Any

from faust.tables import TableManager
from faust.tables.recovery import Recovery


class _Recovery(Recovery):
    def need_recovery(self) -> bool:
        return False


class Tables(TableManager):
    """All tables of an app."""

    @property
    def recovery(self) -> Any:
        if self._recovery is None:
            self._recovery = _Recovery(self.app, self, beacon=self.beacon, loop=self.loop)
        return self._recovery

    async def on_start(self) -> None:
        """Start as Faust does, but for its first second, in which it waits for nothing."""
        await self._update_channels()
        await self.recovery.start()
