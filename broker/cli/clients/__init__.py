"""What the tools that produce and consume are made of.

They use librdkafka through confluent-kafka: the fastest client there is in Python, so that the
performance tools measure the cluster and not themselves, and one that takes most settings under
Kafka's own names. `settings.py` translates the rest and `library.py` makes the clients; the other
files are one subject each and touch no network.
"""
