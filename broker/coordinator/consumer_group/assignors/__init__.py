"""Who is to have which partition: the assignors that run in the coordinator. Pure.

    assign(spec) -> the new target of every member

Both are complete (each partition of a subscribed topic has one owner that subscribes to it),
balanced as far as subscriptions allow, and sticky: nothing moves that balance does not ask to.
Neither looks at racks, as in Kafka since 4.0. `spec.py` is what they are given.
"""
