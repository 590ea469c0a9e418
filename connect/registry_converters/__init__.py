"""Converters whose schemas lie in a schema registry: Avro and JSON Schema.

Names, settings and bytes are those of Confluent's converters. What is asked of the registry is
asked once for each schema (`registry.py`, through Confluent's client); `avro_schema.py`,
`avro_data.py` and `json_schema_form.py` translate and are pure.
"""
