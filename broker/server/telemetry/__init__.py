"""Client metrics (KIP-714): what the cluster wants, and where pushed metrics go."""
