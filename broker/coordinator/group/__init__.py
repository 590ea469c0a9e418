"""The group coordinator: one state machine without IO per partition of `__consumer_offsets`.

It dispatches to the kinds of groups, each in a package of its own, and keeps committed offsets. The
rules of all these packages:

- There is no IO, no clock and no random source: `now` and `random` are arguments.
- A handler checks a request, then changes the state and returns an `Output`: records to append as
  one batch, and replies to send once that batch is committed. A refusal (`KafkaError`) changes
  nothing.
- The records are the persisted state; `replay` rebuilds it.

Start with `shard.py` (dispatch), then `broker.coordinator.group_state.step`.
"""
