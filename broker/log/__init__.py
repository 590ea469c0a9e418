"""Partitions on disk, in Kafka's own files (`format.md` describes them with a worked example).

Start with `partition_log.PartitionLog`: what everybody above this package holds. `local_log` says
what it consists of, and its parts are given that: `append` and `rewrite` (what a leader checks and
writes), `read`, `retention` (which segments may go), `recovery` and `replay` (opening, after a
clean stop and after any other), `segment` and `index/` (the files), `leader_epochs`, `producers/`
(sequences and transactions), `flush`.
`cleaner/` compacts. `log_directories.LogDirectories` holds all partitions of a broker; `moves`
brings one from one directory to another. `config` and `topic_settings` are a topic's settings.

Rules: everything touches the disk through `storage`, times are arguments, no thread and no loop is
made here. A log has one owner thread; what may run on another says so (`FlushWork.run`,
`CleaningRun`). Nothing changes in memory before the disk has taken it, and an `OSError` ends the
log directory: nothing is tried again.
"""
