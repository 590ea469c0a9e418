"""The serving store: what the streaming job knows, where the dashboard reads it.

One SQLite file in WAL mode: one process writes (`writer`), any number read (`reader`), nobody
waits for anybody. `layout` has the tables. Amounts are whole numbers of 1/10000 (`_e4`), as the
events have four decimal places, so sums are exact.
"""
