"""A client of Kafka's protocol, on our own codec.

`exchange` is one connection without IO. It has two shells: `blocking`, for command-line tools, and
`on_loop`, for programs on asyncio. `cluster` chooses the node of a request, on asyncio; its
blocking counterpart is `common.kafka.admin.client`.
"""
