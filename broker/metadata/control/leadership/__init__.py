"""The leader and the in-sync set of each partition, and all causes that change them.

Start at `partition_change.py`, which builds the one record for a wanted change of a partition.
`broker_changes.py` computes the wanted changes when brokers come and go; the other files handle
requests and periodic elections.
"""
