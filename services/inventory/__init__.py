"""The inventory check: reserves an order's products if the warehouse has all of them."""
