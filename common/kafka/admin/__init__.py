"""The admin client, for clusters of Millstream and of Apache Kafka.

It is synchronous and small: one request at a time, on `common.kafka.client.blocking`. `client` is
the start; each other file has the requests of one subject and returns plain values, which the
command-line tools print.
"""
