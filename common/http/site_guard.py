"""Decides which requests a server answers by `Host`, `Origin` and `Sec-Fetch-Site`. Pure.

A page that a browser shows may send requests to any server that the browser reaches. Such a request
names the page's site in `Origin`; a request of another site may change nothing. A site may also let
its own name point to the server's address (DNS rebinding); `Host` then has that name. So `Host` has
to be an address, a name that nobody can register, a name of this server, or one that a setting
names. A browser always sends `Host`; a client that sends none is no browser.
"""

import ipaddress
import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes, urlsplit

from common.process.json_text import is_unicode

READING: Final = ("GET", "HEAD")
_OWN_PAGES: Final = ("same-origin", "none")
_METHODS: Final = "GET, POST, PUT, PATCH, DELETE, OPTIONS"
_RESERVED: Final = (".localhost", ".internal", ".cluster.local")
"""Ends of names that the public DNS never has: RFC 6761, ICANN's private use, Kubernetes."""
_SHOWN_CHARACTERS: Final = 100
_ANY: Final = "*"


_HOST: Final = re.compile(r"(?:\[[0-9A-Za-z:.%]+\]|[A-Za-z0-9._~%!$&'()*+,;=-]*)(?::([0-9]{0,5}))?")
"""The grammar of RFC 9110, section 7.2."""
_MAX_PORT: Final = 65_535
_UNREAD_HEADERS: Final = ("cookie", "user-agent", "referer")
"""No server here reads them, and they are of other people: they may have any bytes."""


class Refusal(NamedTuple):
    """Why a request is not answered."""

    status: int
    detail: str


@dataclass(frozen=True, slots=True)
class SiteGuard:
    """Decides by method and headers. Names are in lower case."""

    allowed_hosts: frozenset[str] = frozenset()
    """Names that clients use besides the usual ones; with `*` every name is served."""
    allowed_origins: frozenset[str] = frozenset()
    """Origins whose pages may call and read; with `*` all may."""
    own_names: frozenset[str] = field(default_factory=lambda: frozenset({_machine()}))
    changing_reads: tuple[str, ...] = ()
    """Ends of paths whose GET changes something too."""
    hosts_setting: str = "MILLSTREAM_ALLOWED_HOSTS"
    origins_setting: str = "MILLSTREAM_ALLOWED_HOSTS"
    """The setting that allows another origin: its host where no setting names origins."""

    def refusal(self, method: str, headers: Mapping[str, str], path: str = "") -> Refusal | None:
        """Return why a request is not answered, None when it is."""
        host = headers.get("Host", "")
        if not self.is_own(host):
            return Refusal(
                421,
                f"The Host header {host[:_SHOWN_CHARACTERS]!r} is not this server's: add the name "
                f"to {self.hosts_setting} if it is.",
            )
        is_change = method not in READING or path.rstrip("/").endswith(self.changing_reads)
        if is_change and not self._may_change(host, headers):
            return Refusal(
                403,
                "A page of another origin may not call this server: add its origin to "
                f"{self.origins_setting} if it may.",
            )
        return None

    def is_own(self, host: str) -> bool:
        """Tell whether a Host header names this server."""
        name = _name(host)
        return (
            # A site has a name with a dot: without one it is an alias in this network.
            "." not in name
            or name.endswith(_RESERVED)
            or _is_address(name)
            or name in self.own_names
            or name in self.allowed_hosts
            or _ANY in self.allowed_hosts
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

    def _may_change(self, host: str, headers: Mapping[str, str]) -> bool:
        origin = headers.get("Origin")
        if origin is None:
            return headers.get("Sec-Fetch-Site", "none") in _OWN_PAGES
        place = _place(origin)
        return (
            self._is_allowed(origin)
            or (place != "" and place == host.lower())
            # A proxy in front that speaks TLS may send another Host.
            or (place != "" and _name(place) in self.allowed_hosts)
        )

    def _is_allowed(self, origin: str) -> bool:
        return _ANY in self.allowed_origins or origin in self.allowed_origins


def parse_names(text: str) -> frozenset[str]:
    """Read a list of names with commas between."""
    return frozenset(filter(None, (each.strip().lower() for each in text.split(","))))


def names_of(*addresses: str | None) -> frozenset[str]:
    """Return this machine's name and the hosts of addresses: URLs, or names alone."""
    found = {_machine()}
    for each in filter(None, addresses):
        found.add(_name(_place(each) if "//" in each else each))
    return frozenset(found)


def guard_of(allowed_hosts: str, *addresses: str | None) -> SiteGuard:
    """Return the guard of a server that takes one setting, and is reached at `addresses`."""
    return SiteGuard(allowed_hosts=parse_names(allowed_hosts), own_names=names_of(*addresses))


def _machine() -> str:
    return socket.gethostname().lower()


def _name(host: str) -> str:
    """Return the name or address of a Host header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].rstrip(".").lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _place(origin: str) -> str:
    """Return the host and port of an origin or a URL, "" where there is none."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def unreadable(target: str, headers: Iterable[tuple[str, str]]) -> Refusal | None:
    """Return why a request cannot be read as text, None when it can be.

    `target` is the path with its query as it was sent. Handlers give what they read to libraries in
    C, which may end the process at a text that is no Unicode.
    """
    if "%" in target:
        try:
            unquote_to_bytes(target).decode()
        except UnicodeDecodeError:
            return Refusal(400, "The path is no UTF-8.")
    for name, value in headers:
        lower = name.lower()
        if lower == "host":
            found = _HOST.fullmatch(value)
            if found is None or int(found[1] or 0) > _MAX_PORT:
                return Refusal(400, f"The Host header {value[:_SHOWN_CHARACTERS]!a} is none.")
        elif lower not in _UNREAD_HEADERS and not is_unicode(value):
            return Refusal(400, f"The header {name} is no UTF-8.")
    return None
