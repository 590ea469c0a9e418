"""Sends messages through every broker all the time, and measures what a client would see.

    layout   which partitions the topic must have, so that each broker leads one
    tally    the messages under way: which came back, and which are lost
    probing  the only part with IO: prepares the topic, produces, consumes, commits
    figures  the metrics, with the names of kminion

It is kminion's end-to-end probe: a cluster's own numbers do not tell that no client gets through.
"""
