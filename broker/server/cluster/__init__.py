"""This broker's registration, its run-time settings, and the view of the cluster for clients."""
