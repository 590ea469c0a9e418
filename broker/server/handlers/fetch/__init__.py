"""Reading the log: Fetch (`fetch`, `fetch_question`, `fetch_read`), ListOffsets, leader epochs."""
