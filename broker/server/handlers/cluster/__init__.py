"""The cluster: versions, brokers, settings, disks, coordinators, requests for the controller."""
