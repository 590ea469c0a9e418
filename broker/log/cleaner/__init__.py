"""Compaction: the cleaner keeps the last value of every key (`run` describes a round)."""
