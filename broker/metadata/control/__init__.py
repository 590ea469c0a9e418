"""What the controller decides, one file per subject. The rules are those of Apache Kafka.

A handler looks at the `ClusterView` and RETURNS a response and records; it changes nothing but the
sessions of brokers, which are no part of the metadata. The shell appends the records, and once they
are committed and replayed it answers. Start at `broker/metadata/controller.py`.
"""
