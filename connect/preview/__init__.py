"""A preview of a connector: ten records, and the result of each step on them.

A source is started and polled, but the preview writes no records and no offsets. A sink is not
started: its records are read without joining its group, and `put` is never called. `run.py` has the
thread and its limits, `source.py` and `sink.py` read records, `way.py` runs the steps on a record,
`shown.py` formats the results and hides secrets, and `limits.py` says how much is done at most.
"""
