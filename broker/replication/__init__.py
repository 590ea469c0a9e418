"""What one replica of a partition decides: as leader, as follower, and whom to read from.

Pure: time is an argument, and a log is what `log.ReplicaLog` asks for. The shell owns sockets,
tasks and timers; it gives inputs and does what comes back.

What metadata makes of a replica, by its partition record (`replica.Replica.apply`):

    now              the record says               then
    any              an older partition epoch      nothing: it is late
    any              leader is this broker, new    Leader: the epoch begins at the log's end, no
                     leader epoch                  position is known, no change is pending
    Leader           same leader epoch, newer      Leader: in-sync set and replicas replaced, the
                     partition epoch               pending change dropped: it is decided
    Leader           another leader, or none       Follower: waiting produces are sent away
    Follower         another leader epoch          Follower: asks the new leader from its log's end,
                                                   whatever it waited for before
    Follower         the same leader epoch         Follower: nothing changes

What a follower does (`follower.PartitionFollower`):

    IDLE             there is no leader                                 until metadata names one
    FETCHING         asks for what follows its log's end                truncates, appends, or
    RESETTING        its log lies outside of the leader's: asks where   then FETCHING from there
                     that begins and ends
    FENCED           the leader knows a newer epoch                     until metadata has it too

and in each of them waits until `retry_at_ms` after an error.

The in-sync set at its leader (`isr.InSyncReplicas`):

    COMMITTED        the set the controller has, as far as this leader knows
    EXPANDING        asked to add one: it counts at once, for the high watermark
    SHRINKING        asked to remove some: they count until the controller has agreed

Invariants, checked after every event of the simulation in `tests/sim`:

- LeaderInIsr: the leader the controller has named is in the in-sync set it has named.
- StrongIsr: every member of the controller's in-sync set, and every eligible leader (KIP-966), has
  everything below the high watermark of whoever believes to lead. Kept by `isr.maximal`, which is
  at least the controller's set, and by `leader.is_in_sync`, which lets nobody in who lacks
  something.
- Elr: eligible leaders and in-sync set share nothing; a fenced broker is not in sync.
- LogMatching: below the lower of two high watermarks two logs are equal. Kept by `fencing`: logs
  are compared, and positions counted, only between two that agree on the leader epoch (KIP-320).
- LeaderCompleteness: who is elected has everything that was committed.
- ConsistentRead: what was once read at an offset is there for ever.
- NoCommittedRecordLost: while fewer than `min.insync.replicas` lose what they had not synced.

Where to start: `replica` holds the role, `leader` and `follower` the two sides. `follower_progress`
is the leader's view of one follower, `isr` the in-sync set, `isr_changes` the AlterPartition
requests of a whole broker, `divergence` and `fencing` the comparison of logs, `offset_waits` who
waits for a watermark, `read_replica` whom a consumer should read from (KIP-392).
`fetch_session` is KIP-227 at both ends, `throttle` the replication quotas (KIP-73).

The life of an append with acks=all:

1. The shell asks `PartitionLeader.validate_append`, appends to the log, and calls `note_append`.
   Alone in its partition, the leader has committed it by that; otherwise the produce waits.
2. A follower's Fetch brings it there. Its next Fetch, from behind it, says so: `note_fetch` moves
   the high watermark when everybody in the maximal in-sync set has it.
3. `take_fulfilled` gives the produces that may be answered, `append_error` with what.
4. The answer to the follower's next Fetch carries the high watermark there.
"""
