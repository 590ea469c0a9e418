"""What a user imports: the `millrace` command and `millrace.testing`.

It starts the programs (broker, registry, services) as processes and imports none of them.
"""
