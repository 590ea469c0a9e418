"""The cluster as it changes: pictures of it, what happened between two of them, and who watches.

`pictures` has what is seen of a cluster at a time, `changes` says in sentences what is different in
the next one. Both are pure. `flows` measures lag and rates, and `watch` takes pictures as long as
somebody watches.
"""
