"""Tasks in processes of their own (`tasks.isolation=process`), so that several cores are used.

The worker keeps one thread for each task, as for those that run in it; that thread does nothing but
talk to the process. In the process the same `TaskThread` runs the same work. The two speak over a
pair of sockets that nobody else has.
"""
