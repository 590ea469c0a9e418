"""The shell of the Raft node: its log, its snapshots and its vote on disk, and its peers."""
