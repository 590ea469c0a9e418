"""Where the values come from that `${provider:path:key}` in a configuration stands for (KIP-297).

`variables.py` finds and replaces them, `providers.py` reads files, directories and the environment.
"""
