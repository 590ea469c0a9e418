"""Measurements, never tests: `make bench`. The method and the figures are in `bench/README.md`.

`broker/` measures nodes, `programs/` what runs around them; `lib/` is what the measurements share:
the servers, the client in C, and the tables of results.
"""
