"""Chaos on the whole pipeline: orders under faults of services and brokers, then an audit.

`shop` places orders and keeps the acknowledgements, `facts` collects the final state, `checker`
compares the two, `__main__` runs the faults.
"""
