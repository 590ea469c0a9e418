"""The package that users import, and the `millstream` command.

It starts the programs (broker, registry, services) as processes and imports none of them.
"""
