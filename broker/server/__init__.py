"""The shell: sockets, timers, the event loop and everything that has effects.

The wiring, the only files that know how a broker is put together:

    running       a node's process: signals, the end of its parent, the limit of its end
    node          a node from start to stop: the quorum, the broker, the listeners
    testing       faults on demand and their control, of a node started with `--testing`
    apis          which APIs are served, and what the handler of each works on
    metrics_page  all numbers as text, those of the broker from `broker_metrics`
    front_page    the page at `/` for browsers
    broker        the parts of one broker, and what each is given

The rooms, each of which knows only those below it (an import contract in pyproject.toml):

    handlers      what each request does
    share         share groups at the leaders of partitions (`broker.share`)
    coordinators  the shells of the state machines in `broker.coordinator`
    replication   this broker's partitions: append, read, and the requests that wait
    quorum        a node's part in the metadata quorum
    storage       background work on the logs: flush, retention, cleaning, moves
    authorization what a request may do, checked before its handler (only with an authorizer)
    quotas        what a client may use: requests are measured, and delayed or refused
    telemetry     the metrics that clients push
    peers         requests to other brokers
    settings      the settings of topics, brokers and groups: described, checked, changed
    cluster       this broker's registration, the view of the other brokers that clients get, and
                  requests to the controller
    network       listeners, connections, frames, and the server of the web pages
    login         TLS and logins: keys, certificates, handshakes, and what SASL needs of the machine
    clock, collector, metrics, distribution, metric_families
                  time and randomness; when garbage is collected; numbers for `/metrics`, how times
                  are counted, and families of metrics as Prometheus takes them

A part gets the objects it works on as arguments: logs, a clock, the metadata, a channel to the
controller. A part that must notify a room above it is given a callable.
"""
