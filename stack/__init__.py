"""The process that runs a development stack: `millstream up` starts it and returns.

It starts the programs, restarts those that die, and creates the seeds. It writes its state to the
file `state.json` in its folder, which the commands and the console read. When it ends, even by a
kill, the kernel ends all of its programs.

`supervisor` is the process, and `seeding` a separate program that creates the
seeds and ends. `looking` is another process: it looks into a cluster for `millstream.testing`, with
`topic_reading`. `cluster_start` runs the brokers of a server in the foreground; `machine` has their
settings.
"""
