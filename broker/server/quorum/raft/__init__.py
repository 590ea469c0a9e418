"""The Raft node with what it touches: its log, its snapshots and its vote on disk, its peers."""
