"""One file per API: what each request does. `server.dispatch` holds the table."""
