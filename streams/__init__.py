"""Stream processing with Faust over the pipeline's topics: a program of its own.

`python -P -m streams` joins the consumer group `millrace-streams`, keeps its tables in RocksDB and
in changelog topics, and answers questions about them over HTTP. Of this project it imports
`schemas` and `common`.

Where to start: `topologies` lists what runs. Every topology is one file (`order_flow`,
`enrichment`, `order_bursts`, `product_sales`, `validation_latency`): pure functions on top, thin
agents at the bottom, and it sees the world through `topology` and `records` only. What stream
processors have and Faust has not is pure code beside them: `windows`, `sessions`, `joins`, and
`testing` for a controlled clock. `around_faust/` makes each record count once, where Faust alone
loses or repeats some. `views` and `web` answer.
"""

from common.http.certificates import read_when_needed

read_when_needed()
