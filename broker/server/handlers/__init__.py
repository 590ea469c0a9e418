"""One file per API or family of APIs: a class that is made of the parts it works on, with a method
`handle`. `server.apis` is the table of the handlers. APIs that differ only in what a shard is asked
are rows of a table (`groups.members`, `groups.describe`, `share_state`).

`handle` is one function: it decides and returns the answer. A `handle` that has to wait is one
generator (`network.later`). The arrays of a request have limits (`protocol.array_limits`), and the
work for one entry takes a few microseconds, so most handlers do all of it without a pause. The
following take steps (`yield None`), so that a request at its limit does not block the loop for
50 ms:

    Metadata, DescribeTopicPartitions, DescribeConfigs,     the answer may have all topics, groups,
    ListGroups, ListTransactions, OffsetFetch,              offsets, producers or logs
    DescribeProducers, DescribeLogDirs
    Fetch, Produce, ListOffsets, OffsetForLeaderEpoch,      20,000 to 50,000 partitions, of which
    OffsetCommit, OffsetDelete, TxnOffsetCommit             each costs 5 to 20 us
    DescribeGroups, ConsumerGroupDescribe, DeleteGroups,    a question to a shard for every entry,
    LeaveGroup, DescribeTransactions, AddPartitionsToTxn    10 us each
    AlterReplicaLogDirs, DeleteRecords, WriteTxnMarkers     files are written for every entry
    PushTelemetry                                           300,000 values of a client in 1 MiB

tests/broker/server/handlers/test_steps_of_every_api.py checks this for every array of every API.
"""
