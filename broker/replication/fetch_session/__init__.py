"""Incremental fetch sessions (KIP-227): a Fetch names only what differs from the previous one.

Both sides keep the partitions of a session. A request adds, changes and removes some of them; an
answer leaves out the partitions without news. The session epoch counts the requests: the server
refuses a request that arrives twice or out of order, and both sides then start a new session.

    request                     the server's answer              then the fetcher sends
    id 0, epoch 0: all          id 0: no session                 id 0, epoch 0: all
                                id n: a session of all           id n, epoch 1: the differences
    id n, epoch e: a part       id n: the session continues      id n, epoch e + 1
                                id 0: closed, no partitions left id 0, epoch 0: all
                                SESSION_ID_NOT_FOUND: evicted    id 0, epoch 0: all
                                any other error                  id n, epoch 0: all, closes n
    id n, epoch 0: all          closes n, as for id 0            as for id 0
    id n, epoch -1: all         closes n, and opens none         nothing: it was the last request

`fetcher_session` is the fetcher's side, `session` one session of the server with its numbers, and
`session_cache` all of the server's sessions and their eviction.
"""
