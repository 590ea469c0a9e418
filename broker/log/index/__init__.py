"""The indexes of a segment: by offset, by time, and of aborted transactions.

The offset index and the time index are sparse. Both derive from the log, and they are rebuilt if
they are missing or invalid. The active segment's indexes are in memory and are written when it
closes.
"""
