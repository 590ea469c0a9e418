"""The cluster state machine: topics, their settings, producer id blocks. Pure.

A handler looks at the state and RETURNS a response and records; only `replay` changes state, and it
never refuses. Start at `cluster.py`, which holds the parts and sends each record to its owner.
"""
