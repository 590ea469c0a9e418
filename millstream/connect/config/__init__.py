"""Settings as Kafka defines, reads and checks them: names, types, defaults, validators, messages.

Start with `config_def.py`. Nothing here does IO.
"""
