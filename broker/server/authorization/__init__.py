"""Authorizes each request before its handler runs.

`table.py` has a check for every API that is served. A check looks at every resource that the
request names and returns a verdict: go on, the refusal, or go on without the denied entries. The
last also changes the answer: the denied entries are added with their error, and resources that the
requester may not see are removed. Handlers do not know of these checks.

The operations, resources and errors are those of Kafka's KafkaApis.
"""
