"""The connectors that ship with Millrace, one file or folder for each system.

They use `millrace.connect`, the interface of all connectors, and no part of the worker."""
