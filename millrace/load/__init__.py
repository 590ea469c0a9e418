"""`millrace load`: orders at a rate, whatever becomes of them, and what becomes of them.

`arrivals` says when each order is due (pure), `sending` posts it then, `following` reads from the
topics what it came to, `report` counts (pure), `command` is the run.
"""

from millrace.load.command import main

__all__ = ["main"]
