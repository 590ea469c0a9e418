"""The producer state of a partition: sequence numbers, epochs, open transactions (KIP-98)."""
