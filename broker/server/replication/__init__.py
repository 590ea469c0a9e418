"""The partitions of this broker: which are here, appending, reading, and who waits for more."""
