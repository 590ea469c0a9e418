"""`format("millrace")`: Kafka topics as a Spark source and sink, in Python.

The options and the schema are those of Spark's own Kafka connector, so a job takes the format by
configuration. `data_source` is the door Spark comes in by; `batch`, `stream` and `sink` do the IO
through `kafka_client` and `range_reader`; what they decide is decided in `options`, `offsets` and
`ranges`, which are pure.
"""
