"""The offsets of connectors.

Source offsets are in a file (`file_store`) or in topics (`kafka_store`), those of sinks in their
groups (`group_offsets`). `requests` shows, alters and resets both for the REST interface.
"""
