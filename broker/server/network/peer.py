"""Who is at the other end of a connection."""

from typing import NamedTuple

from broker.security.principal import ANONYMOUS


class Peer(NamedTuple):
    """Who is at the other end, and through which of our listeners it came."""

    host: str
    listener_name: str
    principal: str = ANONYMOUS
