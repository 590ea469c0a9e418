"""One file per API, named for it: a class that is made of the parts it works on, and its `handle`.

`server.apis` is the table of them.
"""
