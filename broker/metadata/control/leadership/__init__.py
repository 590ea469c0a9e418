"""Who leads a partition and who is in sync, whatever makes that change.

Start at `partition_change.py`, which makes the one record of a partition from what is wanted;
`broker_changes.py` says what that is when brokers come and go, the others what requests want.
"""
