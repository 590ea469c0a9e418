"""The commands that ask a worker: `millrace connect list`, `status`, `restart` and so on.

`arguments.py` says which there are, `commands.py` does them, `rest.py` asks the worker and
`tables.py` prints. Nothing of the worker itself is imported, so that a command answers at once.
"""
