"""Kafka's wire protocol: bytes <-> messages, for every version, without any state.

Start with `message.py` (how a message is declared) and `messages/metadata.py` (one that is).
`layout.py`, `decoding.py` and `encoding.py` turn a declaration into straight-line functions, one
per version, the first time it is used (`source.py` is one under construction, `wire.py` has the
primitive values); `structs.py` keeps them. `framing.py` adds the
headers of requests and responses, `api_keys.py` the versions of every API, `array_limits.py` the
limits of their arrays; `consumer_protocol.py` and `principal.py` are bytes inside of messages.
`records/` holds the records of Kafka's own logs in the same style.

Rules: no length is trusted before it is compared with the bytes that are left; only `DecodeError`
leaves for bad bytes; record batches are never copied nor looked into.
"""
