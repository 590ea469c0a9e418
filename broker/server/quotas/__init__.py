"""Holds clients to their quotas; the rules are in `broker.quotas`.

`metering` measures requests and mutes connections, `sizes` finds the bytes of a request,
`mutations` limits changes of the metadata, `quota_metrics` shows all of it on `/metrics`.
"""
