"""The APIs of the share coordinator, which only brokers use (KIP-932)."""
