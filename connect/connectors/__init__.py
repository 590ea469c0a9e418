"""The connectors that ship with Millstream, one file or folder for each system.

They use `millstream.connect`, the interface of all connectors, and no part of the worker."""
