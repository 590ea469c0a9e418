"""The inventory check: is everything an order asks for in the warehouse, and then reserve it."""
