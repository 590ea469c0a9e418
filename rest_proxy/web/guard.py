"""Whom the proxy answers: no page of another site, no name that somebody pointed here. Pure.

A page that a browser shows may send requests to 127.0.0.1. Its requests say where it comes from
(`Origin`, `Sec-Fetch-Site`): one from another site may change nothing, unless its origin is allowed
(`access.control.allow.origin`). A site may also let its own name point to 127.0.0.1 (DNS
rebinding); then `Host` has that name, so where the proxy listens on loopback only names of loopback
are served, and those that are allowed (`allowed.hosts`).
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from rest_proxy.refusals import UNAUTHORIZED, RestError

_READING: Final = ("GET", "HEAD")
_LOCAL_NAMES: Final = ("localhost", "ip6-localhost")
_SAME_SITE: Final = ("same-origin", "none")
MISDIRECTED: Final = 421
_METHODS: Final = "GET, POST, PUT, PATCH, DELETE, OPTIONS"


@dataclass(frozen=True, slots=True)
class Guard:
    """Decides by method and headers."""

    is_local: bool
    """Whether the proxy listens on loopback."""
    allowed_hosts: frozenset[str]
    allowed_origins: frozenset[str]

    def check(self, method: str, path: str, headers: Mapping[str, str]) -> None:
        """Raise RestError for a request that is not to be answered.

        A read of records moves its instance on, so it changes something too.
        """
        host = headers.get("Host", "")
        if not self._is_own(host):
            raise RestError(
                MISDIRECTED,
                f"The Host header {host[:100]!r} is not this server's: add the name to "
                "allowed.hosts if it is.",
            )
        is_change = method not in _READING or path.rstrip("/").endswith("/records")
        if is_change and not self._may_change(host, headers):
            raise RestError(
                UNAUTHORIZED,
                "A page of another origin may not call this server: add its origin to "
                "access.control.allow.origin if it may.",
            )

    def cross_origin_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers that let an allowed origin's page read the answer."""
        origin = headers.get("Origin", "")
        if not origin or not self._is_allowed(origin):
            return {}
        allowed = headers.get("Access-Control-Request-Headers", "Content-Type, Accept")
        return {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Methods": _METHODS,
            "Access-Control-Allow-Headers": allowed,
            "Access-Control-Max-Age": "600",
            "Vary": "Origin",
        }

    def _is_own(self, host: str) -> bool:
        if not self.is_local or "*" in self.allowed_hosts:
            return True
        name = _name(host)
        return name in _LOCAL_NAMES or name in self.allowed_hosts or _is_loopback(name)

    def _may_change(self, host: str, headers: Mapping[str, str]) -> bool:
        origin = headers.get("Origin")
        if origin is None:
            return headers.get("Sec-Fetch-Site", "none") in _SAME_SITE
        return self._is_allowed(origin) or _origin_host(origin) == host.lower()

    def _is_allowed(self, origin: str) -> bool:
        return "*" in self.allowed_origins or origin in self.allowed_origins


def _name(host: str) -> str:
    """Return the name or address of a Host header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].rstrip(".").lower()


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    """Tell whether an address to listen on is reached from this machine only."""
    return host in _LOCAL_NAMES or _is_loopback(host)


def _origin_host(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""
