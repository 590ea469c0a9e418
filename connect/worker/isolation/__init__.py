"""Runs tasks in their own processes (`tasks.isolation=process`), so that they use several cores.

The worker keeps one thread per task, which only exchanges messages with the process. In the process
the same `TaskThread` runs the same work. The messages go over a private pair of sockets.
"""
