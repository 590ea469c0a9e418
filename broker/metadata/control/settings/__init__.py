"""The settings of the cluster: settings of resources, quotas, feature levels."""
