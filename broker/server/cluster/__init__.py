"""This broker in its cluster: registration, run-time settings, and what clients are told of it."""
