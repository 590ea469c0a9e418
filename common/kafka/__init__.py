"""Kafka's protocol, our own client of it, and what aiokafka and librdkafka lack or have to be told.

`protocol/` is the codec, `client/` a client on it, `admin/` the admin client; `errors` has the
error codes, `acls` what a rule says, `settings` the settings. `group_member` is a member of a group
of any type, and `group_offsets` has what groups have committed. `quiet_clients` logs clients
seldom; `rights` has the least rights of each program, and `grants` gives them.

`batches` are aiokafka's. `topics` declares topics, `topic_creation` creates them, `reading` reads
partitions to their end, `consumer` is aiokafka's with what it lacks, `inbox` takes what it has
fetched, `assignment` divides partitions, `transactions/` writes a batch in one transaction,
`stopping` ends clients in whatever state they are.
"""
