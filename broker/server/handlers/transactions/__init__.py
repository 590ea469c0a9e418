"""Producer ids and transactions: coordinators, markers, and requests of administrators."""
