"""Reading the log: Fetch (`fetch`, `current_fetch`, `fetch_read`), `list_offsets`, and epochs."""
