"""How a program serves HTTP: with TLS, and to whom. One file for every server of the project.

    ssl.keystore.type=PEM
    ssl.keystore.location=certificates/orders.pem
    ssl.truststore.location=certificates/ca.pem
    authentication.method=BASIC
    authentication.users.file=http-users.properties
    basic.auth.user.info=orders:...

The names are those of Confluent's programs. The users' file has a line `NAME=PASSWORD` for each.
Servers that pass requests on to each other trust `ssl.truststore.location`, and authenticate with
`basic.auth.user.info`. Probes (`/health`, `/health/live`, `/health/ready`) answer everybody.
"""

import argparse
import base64
import binascii
import hmac
import logging
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from common.credentials.access import read_client_file
from common.credentials.stores import StoreError, pem_of
from common.credentials.tls import VERSIONS, load_key, load_trusted, set_ciphers, set_versions
from common.credentials.translation import ClientSettingsError, client_context, librdkafka_security

log = logging.getLogger("common.credentials")

OPTION: Final = "--http-config"
VARIABLE: Final = "MILLSTREAM_HTTP_CONFIG"
MEANING: Final = "file that says how HTTP is served: ssl.keystore.location, authentication.method"
OPEN_PATHS: Final = frozenset({"/health", "/health/live", "/health/ready"})
REALM: Final = "millstream"
MAX_LOGGED_CHARACTERS: Final = 200
"""Of each text of a client that has not authenticated."""
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_METHOD, _USERS = "authentication.method", "authentication.users.file"
_USER_INFO = "basic.auth.user.info"
_KNOWN: Final = frozenset(
    {
        *(_METHOD, _USERS, _USER_INFO, "ssl.client.auth", "ssl.enabled.protocols"),
        *("ssl.cipher.suites", "ssl.key.password"),
        *(f"ssl.keystore.{name}" for name in ("type", "location", "password")),
        *("ssl.keystore.key", "ssl.keystore.certificate.chain"),
        *(f"ssl.truststore.{name}" for name in ("type", "location", "password", "certificates")),
    }
)
SERVER_SETTINGS: Final = frozenset(name for name in _KNOWN if name.startswith("ssl."))
"""The names of the settings of TLS."""
_FILES: Final = ("ssl.keystore.location", "ssl.truststore.location")


@dataclass(eq=False)
class HttpSecurity:
    """The security of one HTTP server; without settings it is open."""

    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    _context: ssl.SSLContext | None = field(default=None, init=False, repr=False)
    _versions: tuple[object, ...] = field(default=(), init=False, repr=False)

    @property
    def has_tls(self) -> bool:
        """Whether connections are encrypted."""
        return any(name.startswith("ssl.keystore.") for name in self.settings)

    @property
    def scheme(self) -> str:
        """What the server's addresses begin with."""
        return "https" if self.has_tls else "http"

    @property
    def user_info(self) -> tuple[str, str] | None:
        """How this program authenticates to the other servers: name and password."""
        name, colon, password = self.settings.get(_USER_INFO, "").partition(":")
        return (name, password) if colon else None

    def context(self) -> ssl.SSLContext | None:
        """Return the context for a new connection, None without TLS.

        It is made again when a file has changed; one that cannot be used is logged, and the
        previous context stays. Raise ClientSettingsError when the first cannot be made.
        """
        if not self.has_tls:
            return None
        versions = tuple(_version_of(self.settings.get(name, "")) for name in _FILES)
        if self._context is None or versions != self._versions:
            try:
                self._context = _server_context(self.settings)
            except ClientSettingsError as error:
                if self._context is None:
                    raise
                log.error("TLS files changed and cannot be used: %s", error)
            self._versions = versions
        return self._context

    def peer_context(self) -> ssl.SSLContext | None:
        """Return the context to reach servers with the same settings; None without TLS."""
        if not self.has_tls:
            return None
        return client_context(librdkafka_security(self.settings))

    def lets_in(self, path: str, authorization: str) -> bool:
        """Return True if a request for a path is answered, by its Authorization header.

        A header that proves nothing is logged with the user that it names.
        """
        if not self.users or path in OPEN_PATHS:
            return True
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() != "basic":
            return False
        try:
            pair = base64.b64decode(given.strip(), validate=True)
        except (binascii.Error, ValueError):
            return False
        # All are compared, so that the time says nothing about which users there are.
        matches = [
            hmac.compare_digest(pair, f"{name}:{password}".encode())
            for name, password in self.users.items()
        ]
        if any(matches):
            return True
        user = pair.partition(b":")[0].decode(errors="replace")
        log.info(
            "HTTP authentication failed user=%r path=%r",
            user[:MAX_LOGGED_CHARACTERS],
            path[:MAX_LOGGED_CHARACTERS],
        )
        return False


OPEN: Final = HttpSecurity()
"""Of a server that is not told otherwise."""


def http_security(file: str) -> HttpSecurity:
    """Return what a file says, `OPEN` without one. Raise ClientSettingsError."""
    return of_settings(read_client_file(file), file) if file else OPEN


def of_settings(settings: Mapping[str, str], named: str) -> HttpSecurity:
    """Return the security that settings say; `named` is where they are. Raise
    ClientSettingsError."""
    unknown = sorted(settings.keys() - _KNOWN)
    if unknown:
        raise ClientSettingsError(f"{named}: {unknown[0]} is no setting of an HTTP server")
    method = settings.get(_METHOD, "NONE").upper()
    if method not in ("NONE", "BASIC"):
        raise ClientSettingsError(f"{named}: {_METHOD}={method}: NONE or BASIC")
    users: dict[str, str] = {}
    if method == "BASIC":
        users = read_client_file(settings.get(_USERS, "")) if settings.get(_USERS) else {}
        if not users or not all(users.values()):
            raise ClientSettingsError(
                f"{named}: {_METHOD}=BASIC needs {_USERS}, a file with lines NAME=PASSWORD"
            )
    security = HttpSecurity(settings, users)
    security.context()
    return security


def check_listener(security: HttpSecurity, listener: str) -> None:
    """Raise ClientSettingsError for a listener that is not served as its URL says."""
    scheme = listener.partition("://")[0].strip().lower()
    if scheme != security.scheme:
        needed = "needs" if scheme == "https" else "is in plain text, but there is"
        raise ClientSettingsError(
            f"listeners={listener} {needed} ssl.keystore.location in the file of {OPTION}"
        )


def add_http_option(
    parser: argparse.ArgumentParser, environment: Mapping[str, str] = os.environ
) -> None:
    """Declare the option, as `http_config`, with the variable as its default."""
    parser.add_argument(OPTION, default=environment.get(VARIABLE, ""), metavar="FILE", help=MEANING)


def _server_context(settings: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    verify = settings.get("ssl.client.auth", "none").lower()
    if verify not in _CLIENT_AUTH:
        raise ClientSettingsError(f"ssl.client.auth={verify}: {', '.join(_CLIENT_AUTH)}")
    try:
        set_versions(context, _protocols(settings))
        set_ciphers(context, _listed(settings.get("ssl.cipher.suites", "")))
        password = settings.get("ssl.key.password") or settings.get("ssl.keystore.password", "")
        load_key(context, "ssl.keystore", _key(settings, password), password)
        trusted = _trusted(settings)
        if trusted:
            load_trusted(context, "ssl.truststore", trusted)
        elif verify != "none":
            raise ClientSettingsError(f"ssl.client.auth={verify} needs ssl.truststore.location")
    except StoreError as error:
        raise ClientSettingsError(str(error)) from error
    context.verify_mode = _CLIENT_AUTH[verify]
    return context


def _protocols(settings: Mapping[str, str]) -> list[str]:
    names = _listed(settings.get("ssl.enabled.protocols", ",".join(VERSIONS)))
    if not names or not set(names) <= set(VERSIONS):
        raise ClientSettingsError(f"ssl.enabled.protocols: there are {', '.join(VERSIONS)}")
    return names


def _key(settings: Mapping[str, str], password: str) -> bytes:
    location = settings.get("ssl.keystore.location", "")
    if location:
        own = settings.get("ssl.keystore.password", "")
        return pem_of("ssl.keystore.location", location, password, own)
    parts = (settings.get(f"ssl.keystore.{name}", "") for name in ("key", "certificate.chain"))
    return "\n".join(parts).encode()


def _trusted(settings: Mapping[str, str]) -> bytes:
    location = settings.get("ssl.truststore.location", "")
    if location:
        password = settings.get("ssl.truststore.password", "")
        return pem_of("ssl.truststore.location", location, password)
    return settings.get("ssl.truststore.certificates", "").encode()


def _listed(text: str) -> list[str]:
    return [each for each in (part.strip() for part in text.split(",")) if each]


def _version_of(location: str) -> object:
    try:
        status = Path(location).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
