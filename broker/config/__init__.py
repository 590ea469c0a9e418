"""The whole public configuration of a node, with Kafka's own setting names.

Nothing else reads files, environment variables or arguments. `sources` collects settings and
refuses unknown names; `broker_config` turns them into typed values; `known_settings` is the table.
"""
