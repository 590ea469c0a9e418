"""Keys, values and headers as bytes, and back: Kafka Connect's converters.

`catalogue.py` lists them under the names configurations use. Each is a class to configure once and
use from one task. None does IO, but those that ask a schema registry: `registry.py`.
"""
