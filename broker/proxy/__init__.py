"""A proxy that puts the rules of `broker.faults` before any Kafka: `millstream faults`.

    answers        what an answer says about brokers' addresses and topics' ids, from the tables
    sessions       what the fetch sessions of the brokers behind have
    upstream       a connection to a broker behind
    forwarding     takes the requests of clients, and gives them to a broker behind
    proxy          the listening ports, one for each broker; the control by HTTP; the pages
    proxy_metrics  the metrics

A client's connection has one connection to a broker. What no rule concerns is passed on as the
bytes that came; so is everything that is not understood. `broker.server.testing` does what the
rules say, as in a broker that is started with `--testing`.
"""
