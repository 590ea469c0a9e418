"""The streaming job: order events in, views of the orders out.

There is one Spark session, one query over all input topics, and one transaction of the serving
store per micro-batch. `events` is the contract between decoding and the views; each view is a file
with one `transform(df, ...) -> df` of column expressions, tested on ten rows. `micro_batch`
combines them, `__main__` runs it. Customer segments are a batch over the history.
"""
