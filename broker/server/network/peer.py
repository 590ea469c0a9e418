"""The other end of a connection."""

from typing import NamedTuple

from broker.security.principal import ANONYMOUS


class Peer(NamedTuple):
    """The principal and address of the other end, and the listener that accepted it."""

    host: str
    listener_name: str
    principal: str = ANONYMOUS
    is_by_token: bool = False
    """True if a delegation token stands for the principal."""
    software_name: str = "unknown"
    """The name of the client's library, if its ApiVersions request has one (KIP-511)."""
    software_version: str = "unknown"
