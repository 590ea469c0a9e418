"""The REST proxy: Kafka over HTTP, with the paths, bodies and codes of Confluent's.

- `refusals`, `json_text`: errors as callers see them; JSON as it is read and written. Pure.
- `formats`: keys and values as JSON: binary, JSON, string, Avro, JSON Schema, Protobuf. Pure.
- `schema_store`: schemas of a registry, each of which is requested once.
- `kafka`: the clients, which send requests to the cluster and produce records.
- `consumers`: consumer instances of version 2, which live between calls.
- `v2`, `v3`: the calls, one file for each kind.
- `web`: the guard, the limits of bodies, and the addresses in answers; `probes`, and metrics.

`settings` are the settings, `endpoints` the names of calls that may be refused, and `proxy` the
parts that calls work with. Start at `app`.
"""
