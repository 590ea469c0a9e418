"""What every service is made of.

`processor` is the heart: it feeds a service's `Worker` with records and commits what the worker
puts out, the rows it changed and the offsets behind them in one transaction. `changelog` keeps
state, `table` follows a whole topic, `external_effects` does what lies outside of Kafka, `requests`
writes records that a client waits for, `runner` starts and stops it all: a `service` of a `worker`,
with `settings` and a page (`front`). An `outbox` takes what a worker sends, `dead_letters` what it
cannot handle, `retries` says how long it waits, `faults` makes it slow on purpose, and `declared`
prints the topics of programs.
"""
