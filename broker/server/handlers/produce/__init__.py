"""Produce: `produce` appends and answers; `transactional_batches` verifies a transaction's."""
