"""Version 2: topics and their partitions, records sent, consumer instances."""
