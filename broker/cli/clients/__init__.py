"""The parts of the tools that produce and consume.

They use librdkafka through confluent-kafka: it is the fastest client in Python, so that the
performance tools measure the cluster and not themselves, and it accepts most settings under Kafka's
own names. `settings.py` translates the rest and `library.py` creates the clients; each other file
is one subject without network.
"""
