"""The serving store: the figures of the streaming job, for the dashboard to read.

It is one SQLite file in WAL mode: one process writes (`writer`), any number read (`reader`), and no
process waits for another. `layout` has the tables, `series` the time ranges of the page. Amounts
are integers of 1/10000 (`_e4`), because the events have four decimal places, so sums are exact.
"""
