"""A preview of a connector: ten records, and what each step of their way makes of them.

A source is really started and polled, but nothing is written: no records, no offsets. A sink is not
started: its records are read without a group's knowing, and `put` is never called. `run.py` has the
thread and its limits, `source.py` and `sink.py` read, `way.py` goes the way of a record and
`shown.py` writes down what there was, with secrets hidden.
"""
