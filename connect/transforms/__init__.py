"""The transformations that ship with Kafka Connect, with its names, settings and results.

`parts.py` is what they share: most work on a record's key or on its value, and come as two classes
(`ReplaceField$Key`, `ReplaceField$Value`). `catalogue.py` lists them all. Everything here is pure.
"""
