"""What several programs share, in rooms; it imports no program.

- `process`: what every process has: clock, settings, log lines, metrics, traces, garbage collector.
- `credentials`: Kafka's security settings: files, logins, keys, certificates, tokens.
- `http`: what the servers share: connections, errors, probes, their page at `/`.
- `kafka`: clients of Kafka: topics, reading to the end, an inbox, transactions of a batch.
- `registry`: events as bytes: the schema registry's client, the wire format, the schema files.
- `processing`: the loop that every service is built on: consume, handle, commit.

A room imports only rooms that stand above it in this list; `http` and `kafka` are independent.
"""
