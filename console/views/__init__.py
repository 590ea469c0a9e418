"""The JSON of each view, and the changes that can be made there.

`brokers` is about the cluster, `topics` about topics and their settings, `records` about what is in
them, `writing` about records that are written or exported; `groups` is about consumers, and
`explaining` says why something is as it is. `schemas` and `connectors` ask the registry and
Connect; `access` has rules, users and quotas; `live` shows the cluster as it changes.
"""
