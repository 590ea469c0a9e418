"""Faust's table recovery, without reading changelogs into active tables.

`tables` makes every store equal to its changelog before a record is handled. Faust would first read
the same changelogs up to the record before their end, and wait for ever: rows are written in
transactions, so the last entry of a partition is a marker. Standbys are read by Faust's own code.
"""

from typing import Any

from faust.tables import TableManager
from faust.tables.recovery import Recovery


class _Recovery(Recovery):
    def need_recovery(self) -> bool:
        return False


class Tables(TableManager):
    """Faust's recovery for all tables of an app."""

    @property
    def recovery(self) -> Any:
        if self._recovery is None:
            self._recovery = _Recovery(self.app, self, beacon=self.beacon, loop=self.loop)
        return self._recovery

    async def on_start(self) -> None:
        """Start like Faust, but without its initial wait of one second."""
        await self._update_channels()
        await self.recovery.start()
