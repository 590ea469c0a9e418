"""The settings of topics, brokers, groups and client metrics: described, checked, changed."""
