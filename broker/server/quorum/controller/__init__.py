"""The active controller, its listeners and its channel for brokers."""
