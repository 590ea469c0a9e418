"""Kafka Connect's REST interface: same paths, bodies, statuses and error bodies.

`server.py` listens, authenticates requests and turns every refusal into an error body.
`connectors.py`, `plugins.py`, `offsets.py` and `admin.py` are the resources; `metrics.py` serves
Prometheus.
"""

from common.http.certificates import read_when_needed

read_when_needed()
