"""Clients of Kafka: what aiokafka and librdkafka lack or have to be told.

`topics` declares topics, `topic_creation` creates them, `reading` reads partitions to their end,
`inbox` takes what a consumer has fetched, `assignment` divides partitions, `transactions/` writes a
batch in one transaction, `metadata_age` keeps metadata fresh, `stopping` ends clients in whatever
state they are.
"""
