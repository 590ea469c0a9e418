"""The decisions of the controller, one file per subject, with the rules of Apache Kafka.

A handler reads the `ClusterView` and RETURNS a response and records. It changes nothing except the
brokers' sessions, which are not part of the metadata. The shell appends the records, and answers
the request after they are committed and replayed. Start at `broker/metadata/controller.py`.
"""
