"""The JSON of each view, and the changes that can be made there.

`overview` and `brokers` are about the cluster, `topics` about topics and their settings, `records`
about what is in them; `groups` about consumers.
"""
