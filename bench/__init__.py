"""Measurements, never tests: `make bench`. The method and the numbers are in `bench/README.md`."""
