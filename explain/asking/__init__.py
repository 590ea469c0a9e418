"""Asks a cluster for facts: the only part of `explain` with IO.

questions     one question after the other; those without an answer are kept
cluster       nodes, quorum, log directories
topics        partitions, settings, offsets, reassignments
transactions  open transactions, transactional ids, producers
records       one offset: its batch, its replicas, its readers
producers     one transactional id, one producer id
share_groups  members and start offsets of a share group
groups        members, commits, and where the partitions end
rights        what a principal may do, and quotas
"""
