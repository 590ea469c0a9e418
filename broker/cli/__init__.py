"""One file per command, with the flags of Kafka's own tools."""
