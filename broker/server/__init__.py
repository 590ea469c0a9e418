"""The shell: sockets, timers, the event loop and everything that has effects.

network       bytes in and out: listeners, connections, frames, the web pages' server
cluster       this broker's place in the cluster: its registration, its settings, what it waits
              for and what clients are told of the others
storage       what goes on beside the requests on the disks: flushing, cleaning, moving
replication   the partitions that are here: append, read, who waits for them
coordinators  the shells of the state machines in `broker.coordinator`
quorum        a node's part in the metadata quorum
handlers      one file per API: what each request does
broker, node  the wiring: one broker of its parts; one node from start to stop
"""
