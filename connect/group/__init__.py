"""How the workers of a cluster share the work. Pure.

The workers are members of one Kafka group of protocol type `connect` (KIP-415). Each says in its
metadata what it runs; whoever the coordinator makes the group's leader decides what each is to run
more and what it is to stop (`assignor.py`), in Kafka Connect's format (`protocol.py`), so that
Apache Kafka's workers and ours can be in one group. What is taken from a worker is given to another
one only in the next round, when the first has said that it has stopped it.
"""
