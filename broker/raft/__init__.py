"""The metadata quorum: KRaft, Kafka's pull-based Raft (KIP-595, 630, 853, 996), without any IO.

Voters (controllers) elect a leader. The leader appends to its log; the other voters, and observers
(brokers), *pull* that log with Fetch. What a majority of the voters has on disk is committed.

    node = RaftNode(config, quorum_state, log, random)
    output = node.start(now_ms)                 # or step(envelope), tick, append, stop, flushed
    node.next_deadline_ms()                     # when to call tick next

The caller carries out an `Output` **in this order**: save `quorum_state`; flush the log if
`must_flush`, and call `flushed`; send the messages; apply the committed records. Messages depend on
this order: a vote must be on disk before the candidate receives it, and a follower's Fetch from an
offset claims that everything before that offset is on the follower's disk. The caller may merge
several outputs before it carries them out (group commit).

A dictionary for readers of the Raft paper. Outside this table, the code uses Kafka's words:

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

Where to start: `roles` has the roles and the table of their transitions, `node` receives the inputs
and dispatches them, `claims` validates the epoch and leader in a message, `voting` is the election,
`leading` the leader's side of replication, `following` the follower's side, and `log` the interface
of the log. The voters change (KIP-853): `voter_set` has their identities, `voter_history` the sets
in the log, `voter_changes` the leader's side of a change with the table of its states, and
`joining` the side of a node that is to be known or to become a voter. `state` is the node's whole
state, `config` its configuration, `output` what an input returns, `messages` and `voter_messages`
what nodes send, `requests` the pending ones; `progress` is the leader's view of the replicas,
`deadlines` the time of the next `tick`, `voter_search` the addresses of voters. The simulation in
`tests/sim` checks the safety properties after every event. The shell that does the IO is
`broker/server/quorum`.

The life of an append:

1. The leader's shell calls `append`. The batch is in the leader's log and not yet flushed. The same
   `Output` answers the parked Fetches with this batch (`leading.answer_parked`).
2. The shell flushes, sends those answers, and calls `flushed`, which counts the leader itself.
3. A follower appends the batch (`following`), flushes, and sends a Fetch from its new end offset.
4. That Fetch counts the follower. When a majority is counted, the leader advances the high
   watermark (`leading`), applies the record, and notifies the caller that waits for the append. The
   followers receive the high watermark with the next answer.

The safety rules, and the functions that keep them:

- One vote per epoch, saved before it is sent: `voting.may_grant`, `Output`.
- A voter votes only for a candidate whose log is at least as up-to-date as its own (Raft 5.4.1):
  `voting.is_up_to_date`.
- Counting replicas commits only entries of the leader's own epoch (Raft 5.4.2):
  `progress.compute_high_watermark`.
- A leader counts itself, and a follower sends its next Fetch, only after a flush: `Output`.
- Truncation never removes a committed entry: `following.truncate_to_diverging_epoch`.
- The newest voter set in a log counts, committed or not; one voter is added or removed at a time,
  after a commit in the leader's own epoch: `voter_history`, `voter_changes`.
- A voter is a node id and a directory id, so a node that lost its disk does not vote again:
  `voter_set.VoterSet.is_voter`, `voting`.
- A leader that removed itself counts only the others, and resigns after the commit:
  `leading.note_flushed`, `voter_changes.is_removed`.
- A message that no correct node sends neither changes the state nor ends the process: `claims`, and
  the checks of answers in `following`.
- A restarted leader may have lost the unflushed end of its log. It never leads the same epoch
  again: it starts as `Resigned`.
"""
