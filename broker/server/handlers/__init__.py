"""One file per API: what each request does. `server.apis` holds the table, and what each
is given."""
