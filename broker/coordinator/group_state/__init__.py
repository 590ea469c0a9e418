"""What a shard of the group coordinator keeps, and what handlers of every kind of group work with.

It knows no kind of group: `ShardState` has a table for each class of groups, and finds it by the
class. Start with `step.py`. `modern_group.py` and `group_records.py` hold what consumer groups,
share groups and streams groups do in the same way.
"""
