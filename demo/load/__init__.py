"""`millstream load`: sends orders at a fixed rate (an open loop) and reports their results.

`arrivals` computes the due times, `sending` posts each order at its time, `following` reads the
results from the topics, `report` counts them, `faults` causes faults, `options` are the options,
and `command` is the run.
"""
