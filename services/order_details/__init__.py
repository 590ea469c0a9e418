"""The order details check: is the order well formed and of known products."""
