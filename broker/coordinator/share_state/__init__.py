"""The share coordinator: one state machine without IO per partition of `__share_group_state`.

A share-partition is a partition of a topic as one share group reads it (KIP-932). Its leader holds
what is in flight; this coordinator holds what outlives the leader: the start offset, the batches
that are delivered or were tried behind it, and the epochs that fence an old leader. The rules of
the package:

- There is no IO, no clock and no random source: `now` is an argument, the topics of the cluster
  come from a callable.
- A handler checks a share-partition and returns a record. `Kept.put` is the only place where a
  share-partition changes, through the call that `replay` also uses. A refusal changes nothing.
- A record is a snapshot of the whole state or an update of it; a snapshot follows every
  `share.coordinator.snapshot.update.records.per.snapshot` updates. The log is not compacted: its
  records below the oldest of the latest snapshots are deleted (`sweeps.py`).

Invariants: the epochs of a share-partition never fall while it exists, and the start offset only
where the group coordinator initialises the state again.

Start with `state.py`, then `requests.py`.
"""
