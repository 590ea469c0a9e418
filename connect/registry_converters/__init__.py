"""Converters whose schemas lie in a schema registry: Avro, JSON Schema, Protobuf.

Names, settings and bytes are those of Confluent's converters. What is asked of the registry is
asked once for each schema (`registry.py`, through Confluent's client); `avro_schema.py` and
`avro_data.py` translate and are pure.
"""
