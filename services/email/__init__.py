"""Email: tells a customer what became of an order, with one mail for each state worth telling."""
