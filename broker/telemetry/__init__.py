"""Metrics that clients push to their cluster (KIP-714), without IO.

    subscriptions     which metrics the cluster wants of which clients
    client_instances  the known clients: what each was told, when it pushed, what it is refused
    library           whether the optional library for OTLP is installed
    otlp              OTLP's MetricsData, read and completed with a protobuf library
    pushed_metrics    the last value of every series, for the broker's metrics page

Everything that a client sends is bounded: the clients, the bytes of a push, the series of a client
and of all clients, the lengths of names and labels.
"""
