"""Measures how far consumers of a Kafka cluster are behind, in records, in seconds, and as a state.

    facts     what one look at a cluster has found, as plain values
    backlog   the records between two offsets, without the markers of transactions
    evaluate  Burrow's rules: the state of a partition from its last commits
    history   when a partition had which end: the lag in seconds
    monitor   takes one look after the other, and says how far each group is behind
    table     this as text for a terminal
    families  this as metrics, with the names of kafka_exporter and of kafka-lag-exporter
    asking    looks at a cluster, with Kafka's protocol; the only part that asks brokers
    spark     the offsets of a Spark query, from its checkpoint
    probe     messages through every broker, all the time, and what became of them
    server    looks at intervals, and serves `/metrics` and health
    command   `millstream lag`

All but the last five are pure: time is an argument.
"""
