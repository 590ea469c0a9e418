"""The decisions of one replica of a partition: as leader, as follower, and for a consumer's rack.

This package does no IO: time is an argument, and the log is a `log.ReplicaLog`. The shell owns
sockets, tasks and timers. It passes inputs in and carries out what the functions return.

How a partition record of the metadata changes a replica (`replica.Replica.apply`):

    role             the record has                role after it
    any              an older partition epoch      unchanged: the record is late
    any              this broker as leader, a      Leader: the epoch starts at the log's end, no
                     new leader epoch              position is known, no change is pending
    Leader           same leader epoch, newer      Leader: in-sync set and replicas replaced, the
                     partition epoch               pending change dropped: it is decided
    Leader           another leader, or none       Follower: waiting produces are refused
    Follower         another leader epoch          Follower: fetches from the new leader, from its
                                                   own log's end, and drops earlier waits
    Follower         the same leader epoch         Follower: unchanged

What a follower does (`follower.PartitionFollower`):

    IDLE             there is no leader                      until the metadata names one
    FETCHING         fetches from its log's end              truncates or appends
    RESETTING        its log's end is outside the leader's   then FETCHING from within the leader's
                     log: asks for the leader's offsets      log
    FENCED           the leader knows a newer epoch          until the metadata has that epoch

In each of these states it waits until `retry_at_ms` after an error.

The in-sync set at its leader (`isr.InSyncReplicas`):

    COMMITTED        the set that the controller has, as far as this leader knows
    EXPANDING        a request to add a replica is pending: the replica already counts for the high
                     watermark
    SHRINKING        a request to remove replicas is pending: they count until the controller agrees

Invariants, which the simulation in `tests/sim` checks after every event:

- LeaderInIsr: the leader that the controller names is in the in-sync set that it names.
- StrongIsr: every member of the controller's in-sync set, and every eligible leader replica
  (KIP-966), has everything below the high watermark of every replica that believes to be the
  leader. Two rules keep it: `isr.maximal` contains at least the controller's set, and
  `leader.is_in_sync` admits no replica that lacks a record.
- Elr: the eligible leader replicas and the in-sync set are disjoint; a fenced broker is not in
  sync.
- LogMatching: below the lower of two high watermarks, two logs are equal. `validate_leader_epoch`
  keeps it: replicas compare logs, and count positions, only if they agree on the leader epoch
  (KIP-320).
- LeaderCompleteness: an elected leader has every committed record.
- ConsistentRead: a record that was read at an offset stays at that offset.
- NoCommittedRecordLost: no committed record is lost while fewer than `min.insync.replicas` replicas
  lose unflushed data.

Where to start: `replica` holds the role; `leader` and `follower` are the two sides.
`follower_progress` is the leader's view of one follower, `isr` the in-sync set, `isr_changes` the
AlterPartition requests of a whole broker, `divergence` the comparison of logs,
`offset_waits` the requests that wait for a watermark, `read_replica` the replica that a consumer
should read from (KIP-392). `fetch_session` is KIP-227 at both ends, `throttle` the replication
quotas (KIP-73), `log` the interface of the log.

The life of an append with acks=all:

1. The shell calls `PartitionLeader.validate_append`, appends to the log, and calls `note_append`.
   If the leader is the only replica, the append is committed at once. Otherwise the produce waits.
2. A follower's Fetch returns the records. The follower's next Fetch starts after them, and with it
   `note_fetch` advances the high watermark once every member of the maximal in-sync set has them.
3. `take_fulfilled` returns the produces to answer, `append_error` the error code for them.
4. The answer to the follower's next Fetch brings the high watermark to the follower.
"""
