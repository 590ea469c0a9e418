"""Processes that are started and supervised: by tests, by the development stack and by the demo.

`child_processes` starts programs and ends them with their parent; on Linux `forked_process` and
`fork_server` fork them from a process that has all modules loaded. `switchboard` has the files by
which people stop and start them. `cluster_layout` gives the
settings of the nodes of a cluster on this machine, `program_arguments` the arguments of a stack's
programs, `settings_files` writes files of settings, and `abandoned_folders` removes what killed
tests left.
"""
