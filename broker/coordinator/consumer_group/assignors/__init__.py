"""The assignors of the coordinator: pure functions that compute the target assignment of a group.

    assign(spec) -> the new target of every member

Every assignment is complete (each partition of a subscribed topic has one owner that subscribes to
the topic), as balanced as the subscriptions allow, and sticky (a partition moves only if the
balance requires it). Racks are ignored, as in Kafka since 4.0. `spec.py` is the input of an
assignor.
"""
