"""The shell of the metadata quorum: everything of a node's part in it except `broker.raft` itself.

Start at `quorum`: one `Quorum` is one node's part, with the image that the rest of the node follows
and the channel through which it asks the active controller. Its parts:

    raft.raft_shell            the Raft node with what it touches; inputs wait there for `run`
      driver                   persist, send, apply: the only safe order
      partition_raft_log       its log over a `PartitionLog`; snapshot_files, snapshot_format beside
      quorum_state_file        epoch and vote on disk
      peers                    one connection to each controller that it sends to
    metadata_machine           committed batches in, image and deltas out
    metadata_snapshots         when a snapshot is due, and what it makes superfluous
    controller
      active_controller        while this node leads: one decision at a time, each committed first
      controller_rules         the controller of `broker.metadata` with this node's configuration
      kraft_upgrade            UpdateFeatures for kraft.version
      controller_channel       a broker's requests to the active controller, here or elsewhere
      controller_listeners     the sockets other nodes connect to; controller_dispatch: the APIs
      describe                 DescribeQuorum, and DescribeCluster of controllers
      failure_probe            whether a broker whose connection closed is gone
    voters, formatting         configured voters, this controller's endpoints; storage format
    initial_controllers        the first controllers of a new quorum
    quorum_metrics             numbers for /metrics, from `quorum_activity` too

The life of a CreateTopics on three nodes: a broker asks its `controller_channel`; that sends it to
the leader's `controller_listeners`; `active_controller` lets the rules decide and appends the
records (`raft_shell.append`); the driver flushes and sends; the followers' next Fetch moves the
high watermark; `metadata_machine` replays the batch; the parts that follow the image are notified;
the answer is sent.
"""
