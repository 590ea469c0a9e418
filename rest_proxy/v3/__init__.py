"""Version 3: clusters, brokers, topics, settings, groups, access control lists, records.

`shapes` is how answers look (pure); each other file has the calls of one kind. Beyond Confluent's,
groups can be deleted and their offsets reset.
"""
