"""Incremental fetch sessions (KIP-227): a Fetch names only what is different from the last one.

Both sides keep the partitions of a session; a request adds, changes and forgets some, an answer
leaves out those of which there is nothing new. The session epoch counts the requests: one that
comes twice, or out of order, is refused, and then both begin anew.

    request                     the server's answer              then the fetcher sends
    id 0, epoch 0: all          id 0: no session                 id 0, epoch 0: all
                                id n: a session of all           id n, epoch 1: what is different
    id n, epoch e: a part       id n: goes on                    id n, epoch e + 1
                                id 0: closed, nothing is left    id 0, epoch 0: all
                                SESSION_ID_NOT_FOUND: evicted    id 0, epoch 0: all
                                any other error                  id n, epoch 0: all, closes n
    id n, epoch 0: all          closes n, as for id 0            as for id 0
    id n, epoch -1: all         closes n, and opens none         nothing: it was the last

`fetcher_session` is the fetcher's side, `session` one session of the server, `session_cache` all of
them and who has to go when there are too many.
"""
