"""The admin client of the command-line tools, for clusters of Millstream and of Apache Kafka.

It is synchronous and small: one request at a time, on `common/kafka/protocol`. `client.py` is the
start; each other file has the requests of one subject and returns plain values, which the tools
print.
"""
