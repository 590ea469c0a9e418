"""Share groups at the leaders of partitions: sessions, reads, locks, and the stored states.

`broker/share` decides; this room has the timers, the requests that wait, and the connections to the
share coordinators.
"""
