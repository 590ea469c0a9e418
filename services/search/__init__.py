"""Search: finds orders by customer, state and words; keeps one document for each order."""
