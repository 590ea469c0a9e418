"""`millrace demo`: the whole order pipeline on this machine, with orders going through it.

`command` runs it; `scenario` is the run itself, step by step. The programs are child processes
(`processes`) that the demo meets only on the wire: REST, Kafka, the schema registry. Orders
come from files (`invoices`) or are made up (`synthetic`); `sending` posts them, `observing`
reads from the topics what becomes of them, `report` counts.
"""

from millrace.demo.command import main

__all__ = ["main"]
