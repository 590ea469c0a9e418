"""The commands that send requests to a worker: `millstream connect list`, `restart` and so on.

`arguments.py` defines them, `commands.py` runs them, `rest.py` sends the requests and `tables.py`
prints; `examples.py` has examples for `--help`. No module of the
worker is imported, so that a command starts fast.
"""
