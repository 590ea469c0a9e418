"""The shell: sockets, timers, the event loop and everything that has effects.

The wiring, the only files that know how a broker is put together:

    node          one process from start to stop: the quorum, the broker, the listeners
    apis          which APIs are served, and what the handler of each works on
    metrics_page  all numbers as text
    broker        the parts of one broker, and what each is given

The rooms, each of which knows only those below it (an import contract in pyproject.toml):

    handlers      one file per API: what each request does
    coordinators  the shells of the state machines in `broker.coordinator`
    replication   the partitions that are here: append, read, who waits for them
    quorum        a node's part in the metadata quorum
    storage       what is done to the logs beside the requests
    authorization what a request may do, checked before its handler (only with an authorizer)
    cluster       this broker's place in the cluster: its registration, its settings, what clients
                  are told of the others, and how to ask the controller
    network       bytes in and out: listeners, connections, frames, the web pages' server

A part takes what it works on as arguments: logs, a clock, the metadata, a way to ask. Where one
below must tell one above, it is given a callable.
"""
