"""The types of schemas. A schema is parsed, written in a canonical form, and compared.

Libraries parse schemas of all three types. The rules to compare them are in `avro_rules` (those of
the library `avro`), `json_rules` and `proto_rules` (those of Confluent's registry).
"""
