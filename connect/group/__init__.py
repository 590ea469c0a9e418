"""The assignment of connectors and tasks to the workers of a cluster. Pure.

The workers are members of one Kafka group of protocol type `connect` (KIP-415). Each member's
metadata lists what it runs. The group's leader, which the coordinator chooses, decides what each
member must start and what it must stop (`assignor.py`). The format is Kafka Connect's
(`protocol.py`), so Apache Kafka's workers and this one can be in one group. A connector or task
that is revoked from one worker is assigned to another one only in the next round, after the first
worker has reported that it has stopped it.
"""
