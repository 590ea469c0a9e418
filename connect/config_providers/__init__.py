"""The config providers, which supply the values of `${provider:path:key}` (KIP-297).

`variables.py` finds and replaces them, `providers.py` reads files, directories and the environment.
"""
