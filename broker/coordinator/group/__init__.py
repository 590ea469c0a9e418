"""The group coordinator: one pure state machine per partition of `__consumer_offsets`.

Classic groups (JoinGroup, SyncGroup, Heartbeat, LeaveGroup) and committed offsets, with the
semantics of Apache Kafka 4.3. Rules of the package:

- No IO, no clock, no random source: `now` and `random` are arguments.
- A handler looks, then changes the state and returns an `Output`: records to append as one batch,
  and replies to send once that batch is committed. A refusal (`KafkaError`) changes nothing.
- What is in the records is the persisted state; `replay` rebuilds it. Members that wait and
  deadlines are soft state: after a reload every loaded member gets a full session timeout.

Start with `shard.py` (dispatch), then `classic_group.py` (states and invariants), then `join.py`.
"""
