"""Version 3: clusters, brokers, topics, settings, groups, access control lists, records.

`shapes` makes the objects of answers (pure); each other file has the calls of one kind. In addition
to Confluent's calls, groups can be deleted and their offsets reset.
"""
