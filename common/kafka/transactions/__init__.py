"""Transactions of a program that consumes and produces: one batch at a time, all or nothing.

`requests` has the requests, `rules` decides (pure), `producer` sends. Start at
`producer`.
"""
