"""The records Kafka keeps in logs of its own: `__consumer_offsets` and `__cluster_metadata`."""
