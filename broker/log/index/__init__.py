"""The indexes beside a segment: by offset, by time, and of aborted transactions.

Offset and time index are sparse, and both are derived from the log: whenever they are missing or
do not make sense they are rebuilt. The active segment's live in memory and are written when the
segment closes.
"""
