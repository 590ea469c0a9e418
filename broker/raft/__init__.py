"""The metadata quorum: KRaft, Kafka's pull-based Raft (KIP-595, KIP-630, KIP-996), without any IO.

Voters (controllers) elect a leader. The leader appends to its log; the other voters, and observers
(brokers), *pull* that log with Fetch. What a majority of the voters has on disk is committed.

    node = RaftNode(config, quorum_state, log, random)
    output = node.start(now_ms)                 # or step(envelope), tick, append, stop, flushed
    node.next_deadline_ms()                     # when to call tick next

The caller does what an `Output` says **in this order**: save `quorum_state`; flush the log if
`must_flush`, and tell `flushed`; then send; then apply. Nothing else makes true what a message
promises: a vote is on disk before the candidate hears of it, and a follower's next Fetch says that
everything before it is on disk. Outputs may be merged before they are carried out (group commit).

A dictionary for readers of the Raft paper; outside of this table we use Kafka's words:

    paper                   here
    term                    leader_epoch
    commit_index + 1        high_watermark (the first offset that is not committed)
    last log index + 1      end_offset
    currentTerm, votedFor   QuorumState, the file `quorum-state`
    AppendEntries           Fetch and its response, with the roles of client and server exchanged
    prevLogIndex + 1, -Term fetch_offset, last_fetched_epoch
    nextIndex going back    diverging_epoch: one round per epoch, not per entry
    heartbeat               a parked Fetch is answered after max_wait_ms at the latest
    InstallSnapshot         FetchSnapshot
    no-op entry (section 8) LeaderChangeMessage, a leader's first record

Where to start: `roles` has the states and the table of their transitions, `node` takes inputs and
passes them on, `claims` says what of a message is believed, `voting` is the election, `leading` the
leader's side of replication, `following` the follower's, `log` what is asked of the log. Safety is
checked after every event of thousands of seeded histories in `tests/sim`. The shell's part is in
`broker/server/quorum`.

The life of an append:

1. The leader's shell calls `append`: the batch is in its log, not yet flushed. Fetches that are
   parked are answered with it (`leading.answer_parked`), in the same `Output`.
2. The shell flushes, sends those answers, and calls `flushed`: the leader counts itself.
3. A follower appends (`following`), flushes, and sends its next Fetch, from the new end offset.
4. That Fetch counts the follower. With a majority the high watermark moves (`leading`), the leader
   applies, and whoever waits for the append is told. The next answer tells the followers.

What keeps it safe, and where:

- One vote per epoch, saved before it is sent: `voting.may_grant`, `Output`.
- Only a log at least as long as the voter's own gets a vote (Raft 5.4.1): `voting.is_up_to_date`.
- Only entries of the leader's own epoch are committed by counting (Raft 5.4.2):
  `progress.compute_high_watermark`.
- A leader counts itself, and a follower fetches on, only after a flush: `Output`.
- A committed entry is never cut off: `following.truncate_to_diverging_epoch`.
- A message that no correct node sends changes nothing, and ends nothing: `claims`, and what
  `following` refuses of an answer.
- A leader that lost its disk's tail never leads the same epoch again: it starts as `Resigned`.
"""
