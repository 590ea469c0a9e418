"""What the measurements share: servers, clients, the demo as a load, and tables of results."""
