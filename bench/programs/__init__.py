"""Measurements of the programs around the brokers, and of the whole demo."""
