"""Transactions of a consumer that is a producer too: a batch at a time, all or nothing.

Shared by the services and the streams, which never import each other; it knows neither.

`messages` is the wire, `rules` decides (pure), `producer` does. Start at `producer`.
"""
