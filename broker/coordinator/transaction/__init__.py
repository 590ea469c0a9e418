"""The transaction coordinator: one pure state machine per partition of `__transaction_state`.

Transactions as in Apache Kafka 4.3: producers known by a transactional id (KIP-98), epochs raised
by a producer itself after an error (KIP-360), an epoch per transaction and partitions that are
verified before an append (KIP-890), descriptions (KIP-664). Rules of the package:

- No IO, no clock, no random source: `now` is an argument, producer ids come from a callable.
- A handler looks at a transaction and writes its next one; `Step.write` is the only place where one
  changes, by the same call that `replay` makes. A refusal (`KafkaError`) changes nothing.
- A transaction is immutable; where it may go is the table in `state.py`.
- Markers are an effect: sent when PREPARE_COMMIT or PREPARE_ABORT is committed, and again by
  whoever loads such a transaction. Which of them are written is soft state.

Start with `state.py` (the table), then `transaction.py` (each transition), then `end_txn.py`.
"""
