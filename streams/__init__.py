"""A program that processes the pipeline's topics with Faust.

`python -P -m streams` joins the consumer group `millstream-streams`, stores its tables in RocksDB
and in changelog topics, and serves views of them over HTTP. It imports `schemas` and `common`, and
no other program.

`topologies` lists everything that runs. Every topology is one file (`order_flow`, `enrichment`,
`order_bursts`, `product_sales`, `validation_latency`) with functions without IO at the top and thin
agents at the bottom; it uses only `topology` and `records`. Features that Faust lacks are separate
modules without IO: `windows`, `sessions`, `joins`, and `testing` with a controlled clock.
`around_faust/` ensures that each record counts once, where Faust alone loses or repeats records.
`views` and `web` serve the views. `app` is the Faust app with its `settings`, `topics`, `codec` and
`telemetry`; `micro_batch` collects the effects of a batch, and `declared` names group and topics.
"""
