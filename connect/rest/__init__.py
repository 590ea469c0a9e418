"""Kafka Connect's REST interface: same paths, bodies, statuses and error bodies.

`server.py` listens, knows who may ask and turns every refusal into an error body; `connectors.py`,
`plugins.py`, `offsets.py` and `admin.py` are the resources; `metrics.py` is what Prometheus reads.
"""

from common.http.certificates import read_when_needed

read_when_needed()
