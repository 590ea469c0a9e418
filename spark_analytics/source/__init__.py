"""`format("millstream")`: Kafka topics as a Spark source and sink, in Python.

The options and the schema are those of Spark's own Kafka connector, so a job can switch the format
by configuration. `data_source` is the entry point for Spark; `batch`, `stream` and `sink` do the IO
through `kafka_client` and `range_reader`; `planner` plans a query between its `edges`, and
`records` makes columns. The decisions are in `options`, `offsets` and `ranges`, which are pure.
"""
