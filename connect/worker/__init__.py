"""The shell around the herder: threads, clients, files. It does what the herder asks for.

Each connector and each task has a thread of its own, with its own clients of Kafka; what becomes of
them is told to the one event loop, which feeds the herder and answers REST. A thread that blocks or
dies holds up nothing but itself; one that does not end when asked is left behind after
`task.shutdown.graceful.timeout.ms`, cut off from everything it could write to.

Why confluent-kafka here, and aiokafka in the services: tasks are plain functions in threads. The C
client sends, fetches and keeps a group's heartbeat outside of Python's lock, so that a task which
computes or blocks loses no membership; and it has transactions that fence. The services write on
one loop what aiokafka alone lets them: transactions with requests of their own, and assignors.
"""

from common.http.certificates import read_when_needed

read_when_needed()
