"""One room per subject, and in it one file per API, named for it: a class made of the parts it
works on, and its `handle`. `server.apis` is the table of them.

`handle` is one function: it decides and returns the answer. Where it has to wait it is one
generator (`network.later`). The arrays of a request have limits (`protocol.array_limits`), and what
a handler does for every entry takes a few microseconds; so most handlers do it without a pause.
These take steps (`yield None`), so that a request at its limit holds nobody up for 50 ms:

    Metadata, DescribeTopicPartitions, DescribeConfigs,     the answer tells of all topics, groups,
    ListGroups, ListTransactions, OffsetFetch,              offsets, producers or logs
    DescribeProducers, DescribeLogDirs
    Fetch, Produce, ListOffsets, OffsetForLeaderEpoch,      20,000 to 50,000 partitions, of which
    OffsetCommit, OffsetDelete, TxnOffsetCommit             each costs 5 to 20 us
    DescribeGroups, ConsumerGroupDescribe, DeleteGroups,    a question to a shard for every entry,
    LeaveGroup, DescribeTransactions, AddPartitionsToTxn    10 us each
    AlterReplicaLogDirs, DeleteRecords, WriteTxnMarkers     files are written for every entry

tests/broker/server/handlers/test_steps_of_every_api.py holds this for every array of every API.
"""
