"""The fraud check: how much a customer orders in one session."""
