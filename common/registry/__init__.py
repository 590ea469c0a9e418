"""Events as bytes, with the schema registry behind.

`wire` is the wire format, `loader` reads the schema files, `client` asks the registry, `events`
reads and writes events by the names of their schemas. `avro_reading` and `json_schema` read what
strangers wrote.
"""
