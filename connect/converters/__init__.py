"""Kafka Connect's converters between keys, values and headers and their bytes.

A converter is configured once and used by one task. No converter in this package does IO; the
converters that ask a schema registry are in `connect/registry_converters`.
"""
