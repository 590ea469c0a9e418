"""Transactions of a program that consumes and produces: one batch at a time, all or nothing.

`messages` has the requests that aiokafka lacks, `rules` decides (pure), `producer` sends. Start at
`producer`.
"""
