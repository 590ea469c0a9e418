"""Consumer instances of version 2: consumers of Kafka that live between calls.

`state` is what an instance is and may do (pure), `instance` the consumer behind it, `reading` how a
read collects records (pure), `instances` all of them: found by name, closed when nobody calls.
"""
