"""Reads partitions of a topic: a page by time, a search, and the records that arrive.

`partitions` asks the leaders for offsets and records, `pages` merges partitions by time, `search`
goes through a range once, `tails` reads what arrives once for all who watch, `following` looks for
one text in many topics, `readers` says who has read it, and `ages` how long records wait. `rows`
decodes in a thread, and `schemas` has the schemas of the registry.
"""
