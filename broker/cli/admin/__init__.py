"""The client the command-line tools ask a cluster with, whosever cluster it is.

Synchronous and small: one request at a time, on `broker/protocol`. Start in `client.py`; the other
files are one subject each and return plain values, which the tools print.
"""
