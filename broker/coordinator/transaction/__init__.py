"""The transaction coordinator: one state machine without IO per partition of `__transaction_state`.

Transactions are as in Apache Kafka 4.3: transactional ids (KIP-98), producers that raise their own
epoch after an error (KIP-360), one epoch per transaction and verified partitions (KIP-890), and
descriptions (KIP-664). The rules of the package:

- There is no IO, no clock and no random source: `now` is an argument, producer ids come from a
  callable.
- A handler checks a transaction and writes the next one. `Step.write` is the only place where a
  transaction changes, through the call that `replay` also uses. A refusal (`KafkaError`) changes
  nothing.
- A transaction is immutable; the table in `state.py` has its transitions.
- Markers are an effect: the shell sends them when PREPARE_COMMIT or PREPARE_ABORT is committed, and
  again after such a transaction was loaded. The set of written markers is soft state.

Start with `state.py` (the table), then `transaction.py` (each transition), then `end_txn.py`.
"""
