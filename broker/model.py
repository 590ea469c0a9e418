"""The few values that all layers of the broker share.

Ranges are half-open: `log_end_offset`, `high_watermark`, `last_stable_offset` and every
`*_end_offset` are the NEXT position (exclusive); `last_*` is inclusive. `timestamp_ms` is wall time
in milliseconds since 1970 UTC; `now_ms` and `deadline_ms` are monotonic.
"""

from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

from common.kafka.topics import TopicPartition as TopicPartition


class OffsetAndEpoch(NamedTuple):
    """A position in a log, and the leader epoch that wrote it."""

    offset: int
    leader_epoch: int


def plain_address(text: str) -> str:
    """Return the one spelling of an address; an IPv4 address in IPv6 form is the IPv4 address."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return text
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


MAX_LOGGED_CHARACTERS = 200
"""Of a text from a client: what a stranger sends must not fill the log."""


def shortened(text: str) -> str:
    """Return a text from a client for a line of the log: on one line, and not long."""
    if len(text) <= MAX_LOGGED_CHARACTERS:
        return repr(text)
    return f"{text[:MAX_LOGGED_CHARACTERS]!r}... ({len(text)} characters)"
