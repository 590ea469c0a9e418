"""The shell's part of the metadata quorum: log, snapshots, `quorum-state`, and the driver."""
