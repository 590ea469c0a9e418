"""The REST interface: paths, bodies, content types and error codes are Confluent's.

Every path is there twice: plain, and below `/contexts/{context}`, where names without a context of
their own belong to that one (docs.confluent.io, "Schema Registry API reference").
"""
