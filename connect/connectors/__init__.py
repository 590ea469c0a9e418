"""The connectors that ship, one file for each system, on `millrace.connect` alone."""
