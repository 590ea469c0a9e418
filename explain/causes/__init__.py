"""The tables of causes, by what they are about.

    cause         what a row is, and how a table is gone through
    asking        what could not be asked
    cluster       brokers, and the quorum of the metadata
    partition     leaders, replicas, reassignments, and transactions that hold readers back
    topic         a topic that is not there, records that it refuses
    record        one offset
    group         state, members and coordinator of a group
    progress      how far a group is in its partitions
    share         share groups
    producer      a producer by its id
    transaction   a transactional id
    right         what a principal may not do

Each file ends with its table; `explain.explanations.TABLES` has all of them.
"""
