"""Kafka Connect's REST interface: same paths, bodies, statuses and error bodies.

`server.py` listens, authenticates requests and turns every refusal into an error body.
`connectors.py`, `plugins.py`, `offsets.py` and `admin.py` are the resources, `desk.py` what all of
them use, `bodies.py` their bodies; `forwarding.py` passes requests to other workers. `page.py` is
the page, `security.py` how all is served; `metrics.py` serves Prometheus.
"""
