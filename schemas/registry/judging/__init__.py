"""Processes that parse and compare schemas, so that a slow one delays nobody else.

process   the process: reads questions, writes answers
pool      starts it when it is needed, ends it when it is idle or takes too long
places    one place at a time for each client
memory    remembers answers, up to a number of bytes
"""
