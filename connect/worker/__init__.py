"""The shell around the herder: threads, Kafka clients and files. It performs the herder's effects.

Each connector and each task runs in its own thread with its own Kafka clients. The threads report
to one event loop, which passes the reports to the herder and answers REST requests. A thread that
blocks or dies delays no other thread. A thread that does not end when asked is *left behind* after
`task.shutdown.graceful.timeout.ms`: from then on it cannot write anything.

`worker.py` is where to start. `tasks/` has the loops of the tasks, `isolation/` runs one in a
process of its own, `offsets/` has the offset stores, and `cluster/` what distributed workers do
together.

Tasks use confluent-kafka, while the services use aiokafka. Tasks are plain functions in threads.
The C client sends, fetches and heartbeats without Python's global interpreter lock, so a task that
computes or blocks keeps its membership of a group; and its transactions fence. The services run on
one event loop and need consumers with assignors of their own, which only aiokafka offers.
"""
