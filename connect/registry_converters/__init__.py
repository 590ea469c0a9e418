"""Converters whose schemas are in a schema registry: Avro, JSON Schema and Protobuf.

Names, settings and bytes are those of Confluent's converters. `registry.py` asks the registry once
for each schema, with Confluent's client. The modules named `*_schema.py`, `*_data.py` and
`json_schema_form.py` translate schemas and values; those for Avro and JSON Schema do no IO.
"""
