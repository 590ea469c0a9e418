"""Producer ids and transactions: coordinators, markers, and what administrators look at."""
