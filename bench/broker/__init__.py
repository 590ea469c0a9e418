"""Measurements of nodes and clusters, alone and beside Apache Kafka."""
