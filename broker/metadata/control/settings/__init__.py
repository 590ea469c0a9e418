"""What is set for the cluster: settings of resources, quotas, feature levels."""
