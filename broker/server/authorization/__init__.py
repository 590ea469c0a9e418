"""What a request may do, decided before its handler sees it.

`table.py` has a check for every API that is served. A check looks at every resource that the
request names and returns a verdict: go on, the refusal, or go on without the entries that are
denied. The last also changes the answer: the denied entries come back with their error, and what
the requester may not be told is taken out. Handlers know nothing of this.

The operations, resources and errors are those of Kafka's KafkaApis.
"""
