"""Compaction: keeping the last value of every key (see `run` for the rules)."""
