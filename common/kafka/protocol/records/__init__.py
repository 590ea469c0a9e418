"""The records of Kafka's internal logs: `__consumer_offsets`, `__transaction_state` and
`__cluster_metadata`.
"""
