"""The addresses in answers: those by which the caller reaches this proxy. Pure.

Scheme and host are those of `advertised.listeners`; otherwise `host.name` with the port; otherwise
those in the headers of reverse proxies (`Forwarded`, RFC 7239; `X-Forwarded-Proto`, `-Host`,
`-Port`, `-Prefix`); otherwise the request's own. An invalid host or path in a header is ignored.
"""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(:\d{1,5})?")
_PREFIX: Final = re.compile(r"(/[A-Za-z0-9._~-]+)*/?")
_SCHEMES: Final = ("http", "https")


def base_url(
    headers: Mapping[str, str], *, scheme: str, host: str, advertised: str, host_name: str
) -> str:
    """Return the address without a slash at its end; `host` is that of the request."""
    forwarded = _forwarded(headers.get("Forwarded", ""))
    told_scheme = _first(headers.get("X-Forwarded-Proto")) or forwarded.get("proto", "")
    scheme = told_scheme.lower() if told_scheme.lower() in _SCHEMES else scheme
    prefix = _first(headers.get("X-Forwarded-Prefix"))
    path = prefix.rstrip("/") if _PREFIX.fullmatch(prefix) else ""
    if advertised:
        return advertised.rstrip("/") + path
    return f"{scheme}://{_authority(headers, forwarded, host, host_name)}{path}"


def _authority(
    headers: Mapping[str, str], forwarded: Mapping[str, str], host: str, host_name: str
) -> str:
    if host_name:
        port = host.rpartition(":")[2]
        return f"{host_name}:{port}" if port.isdigit() else host_name
    told = _first(headers.get("X-Forwarded-Host")) or forwarded.get("host", "")
    if not _HOST.fullmatch(told):
        return host
    port = _first(headers.get("X-Forwarded-Port"))
    has_port = re.search(r":\d+$", told) is not None
    return f"{told}:{port}" if port.isdigit() and not has_port and len(port) <= 5 else told


def _first(value: str | None) -> str:
    """Return the value of the proxy nearest to the caller."""
    return (value or "").partition(",")[0].strip()


def _forwarded(value: str) -> dict[str, str]:
    found = {}
    for pair in value.partition(",")[0].split(";"):
        name, separator, told = pair.partition("=")
        if separator:
            found[name.strip().lower()] = told.strip().strip('"')
    return found


def path_of(*parts: str | int) -> str:
    """Return parts as a path, each quoted."""
    return "/".join(quote(str(part), safe="-_.~") for part in parts)
