"""Consumer instances of version 2: consumers of Kafka that live between calls.

`state` is the state of an instance (pure), `instance` has the consumer behind it, `reading` limits
the records of a read (pure), and `instances` finds them by name and closes those without calls.
"""
