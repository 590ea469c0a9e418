"""The group coordinator: one state machine without IO per partition of `__consumer_offsets`.

It has classic groups (JoinGroup, SyncGroup, Heartbeat, LeaveGroup) and committed offsets, with the
semantics of Apache Kafka 4.3. The rules of the package:

- There is no IO, no clock and no random source: `now` and `random` are arguments.
- A handler checks a request, then changes the state and returns an `Output`: records to append as
  one batch, and replies to send once that batch is committed. A refusal (`KafkaError`) changes
  nothing.
- The records are the persisted state; `replay` rebuilds it. Parked requests and deadlines are soft
  state: after a reload, every loaded member gets a full session timeout.

Start with `shard.py` (dispatch), then `classic_group.py` (states and invariants), then `join.py`.
"""
