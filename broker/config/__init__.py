"""The whole public configuration of a node, with Kafka's names of settings.

Only this package reads files, environment variables and arguments. `sources` collects settings and
refuses unknown names, `broker_config` converts them to typed values, and `known_settings` is the
table of all settings.
"""
