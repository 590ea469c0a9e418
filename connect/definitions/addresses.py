"""Finds the settings that decide to which address a connector sends its secrets. Pure.

A setting is one of them if its name contains a word for an address or for the protection of a
connection, or if its value looks like an address. So unknown plugins are covered, too. If a
harmless setting is taken for an address, the user has to type a secret again; the opposite mistake
would give the secret away.
"""

import re
from collections.abc import Mapping
from typing import Final

from connect.definitions.connector import CLASS

Config = Mapping[str, str | None]

_PARTS: Final = (
    *("url", "uri", "host", "server", "endpoint", "address", "broker", "bootstrap", "proxy"),
    # Without these the way there is open, or ends somewhere else.
    *("ssl", "tls", "https", "security", "protocol", "mechanism", "truststore", "jaas", "oauth"),
)
_WORDS: Final = frozenset(
    {"port", "ports", "region", "bucket", "domain", "dsn", "socket", "ca", "realm", "driver"}
)
_WORD: Final = re.compile(r"[a-z]+|[A-Z][a-z]*|[0-9]+")
_LOOKS_LIKE_ONE: Final = re.compile(
    r"\w://|^jdbc:|@|^\[?[\w.:-]+\]?:[0-9]{1,5}(/|,|$)|^[0-9]{1,3}(\.[0-9]{1,3}){3}$"
)


def changed_addresses(before: Config, after: Config) -> list[str]:
    """Name the settings of addresses that differ, are new or are gone."""
    names = sorted(before.keys() | after.keys())
    return [
        name
        for name in names
        if before.get(name) != after.get(name)
        and (_is_named_so(name) or _looks_so(before.get(name)) or _looks_so(after.get(name)))
    ]


def _is_named_so(name: str) -> bool:
    lowered = name.lower()
    words = {word.lower() for word in _WORD.findall(name)}
    return name == CLASS or any(part in lowered for part in _PARTS) or bool(words & _WORDS)


def _looks_so(value: str | None) -> bool:
    return value is not None and _LOOKS_LIKE_ONE.search(value.strip()) is not None
