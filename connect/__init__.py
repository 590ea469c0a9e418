"""A worker of Kafka Connect: it runs connectors, which copy data into and out of topics.

`README.md` lists the folders and says where to start reading.
"""
