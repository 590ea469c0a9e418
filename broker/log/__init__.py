"""The logs of partitions on disk, in Kafka's file formats (`format.md` has a worked example).

Start with `partition_log.PartitionLog`, which all users of this package hold. `local_log` is its
state, and the other files work on that state: `append` and `rewrite` (what a leader checks and
writes), `read`, `retention` (which segments may be deleted), `recovery` and `replay` (opening after
a clean stop and after any other stop), `log_start`, `segment` and `index/` (the files),
`leader_epochs`, `producers/` (sequences and transactions), `flush`. `walk` iterates over a file.

`cleaner/` compacts. `log_directories.LogDirectories` holds all partitions of a broker in its
`log_directory`s, and moves one to another directory. `checkpoints` and `meta_properties` are
the small files of a directory, `names` the names in it, `config` and `topic_settings` the settings
of a topic.

Rules: all access to the disk goes through `storage`, times are arguments, and this package starts
no thread and no event loop. A log has one owner thread; a function that may run on another thread
says so (`FlushWork.run`, `CleaningRun`). Memory changes only after the disk has taken the data. An
`OSError` takes the log directory offline, and no operation is retried.
"""
