"""The cluster: versions, brokers, settings, disks, coordinators, what the controller decides."""
