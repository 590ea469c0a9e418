"""Kafka Connect's REST interface: same paths, bodies, statuses and error bodies.

`server.py` listens, authenticates requests, answers for offsets and turns every refusal into an
error body. `connectors.py`, `plugins.py` and `admin.py` are the resources, `desk.py` what all of
them use, `bodies.py` their bodies; `forwarding.py` passes requests to other workers. `page.py` is
the page; `metrics.py` serves Prometheus.
"""
