"""Chaos on the whole pipeline: orders while services and brokers are killed, and then the sums.

`shop` places orders and keeps what it was promised, `facts` collects what is there afterwards,
`checker` compares the two, `__main__` breaks things meanwhile.
"""
