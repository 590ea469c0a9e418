"""Reading the log: Fetch (`fetch`, `fetch_question`, `fetch_read`), `list_offsets`, and epochs."""
