"""Produce: `produce` appends and answers; `transactional_batches` has a transaction's verified."""
