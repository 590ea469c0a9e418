"""One file per API: what each request does. `network.dispatch` holds the table."""
