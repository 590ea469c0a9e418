"""Transactions of a consumer that is a producer too: a batch at a time, all or nothing.

`messages` is the wire, `rules` decides (pure), `producer` does. Start at `producer`.
"""
