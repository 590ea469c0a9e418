"""The aggregator: three checks in, one decision per order out."""
