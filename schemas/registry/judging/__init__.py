"""Processes that parse and compare schemas, so that a slow schema delays no other request.

process   the process: reads questions, writes answers
pool      starts a process when it is needed, ends one that is idle or takes too long, limits each
          client to one question at a time, and keeps answers, up to a number of bytes
"""
