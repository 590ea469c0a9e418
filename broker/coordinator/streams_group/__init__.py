"""Streams groups: applications of Kafka Streams whose tasks the broker assigns (KIP-1071).

    heartbeat             the one request of members: join, stay, be assigned, leave
    topology              subtopologies and their topics, as the application sends them
    configured_topology   what the cluster's topics make of it: tasks, and missing internal topics
    targets, new_targets  when the assignor runs, and its interruptible computation
    sticky                the assignor
    reconciliation        how a member gets from its tasks to its target
    departures            members that leave or are removed
    endpoints             where the state of each partition is, for interactive queries
    administration        descriptions; checks for commits and fetches of offsets
    streams_group, member the state; `records` and `replay` persist it
    config                the settings, and our limits

It shares the classes of a shard with the other groups: `group_state/step.py`, `group/shard.py`.
"""
