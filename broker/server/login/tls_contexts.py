"""TLS contexts, made of Kafka's settings and made again when a file or a setting changes.

A store is PEM text, or a file that `common.credentials.stores` reads: a private key and its
certificate chain together, or trusted certificates. The content of both stores of a context is
kept, so that new stores can be compared with those in use after their files have changed.
"""

import logging
import os
import ssl
from collections.abc import Callable
from typing import NamedTuple

from broker.config.security_config import ClientSecurity, TlsConfig
from broker.config.sources import invalid
from common.credentials.stores import Store, StoreError, pem_of
from common.credentials.tls import load_key, load_trusted, set_ciphers, set_versions
from common.kafka.errors import KafkaError

log = logging.getLogger("millstream.tls")

CHECK_INTERVAL_SECONDS = 1.0
"""The shortest time between two checks for a changed file; a new connection checks."""
VERIFY_MODES = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}

Config = TlsConfig | ClientSecurity
Version = tuple[int, int, int]


class Loaded(NamedTuple):
    """The settings of a context with the PEM text of their stores, None for a store not set."""

    config: Config
    key: bytes | None
    trusted: bytes | None


class TlsContexts:
    """Owns the TLS context of one listener, or of the connections to one kind of listener."""

    def __init__(self, config: Config, now: Callable[[], float]) -> None:
        """Make the first context; raises KafkaError(INVALID_CONFIG)."""
        self._now = now
        self._checked_at = now()
        self._config = config
        self._versions = _file_versions(config)
        self.loaded = load(config)
        self._context = context_of(self.loaded)

    def current(self) -> ssl.SSLContext:
        """Return the context for a new connection, made of the current files.

        A file that cannot be used is logged, and the previous context stays.
        """
        if self._now() - self._checked_at >= CHECK_INTERVAL_SECONDS:
            self.use(self._config)
        return self._context

    def use(self, config: Config) -> None:
        """Take other settings, or the same ones with files that have changed, for new connections.

        Settings and files that cannot be used are logged, and the previous context stays until they
        can be used.
        """
        self._checked_at = self._now()
        versions = _file_versions(config)
        if config == self._config and versions == self._versions:
            return
        self._config, self._versions = config, versions
        try:
            loaded = load(config)
            self._context = context_of(loaded)
        except KafkaError as error:
            log.error("TLS files changed and cannot be used: %s", error.message)
        else:
            self.loaded = loaded
            log.info("TLS files reloaded stores=%s", ",".join(_files(config)))


def load(config: Config) -> Loaded:
    """Read the stores; raises KafkaError(INVALID_CONFIG) that names the setting."""
    try:
        return Loaded(
            config,
            None if config.keystore is None else _pem_of(config.keystore, _password(config)),
            None if config.truststore is None else _pem_of(config.truststore, ""),
        )
    except StoreError as error:
        raise invalid(str(error)) from error


def context_of(loaded: Loaded) -> ssl.SSLContext:
    """Make a context; raises KafkaError(INVALID_CONFIG) that names the setting."""
    try:
        if isinstance(loaded.config, TlsConfig):
            return _server_context(loaded.config, loaded)
        return _client_context(loaded.config, loaded)
    except StoreError as error:
        raise invalid(str(error)) from error


def make_context(config: TlsConfig) -> ssl.SSLContext:
    """Make a server's context; raises KafkaError(INVALID_CONFIG) that names the setting."""
    return context_of(load(config))


def make_client_context(config: ClientSecurity) -> ssl.SSLContext:
    """Make the context to connect to other nodes with; raises KafkaError(INVALID_CONFIG)."""
    return context_of(load(config))


def _server_context(config: TlsConfig, loaded: Loaded) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    set_versions(context, config.protocols)
    # A client that resumes a session with a ticket would keep rights that were withdrawn.
    context.options |= ssl.OP_NO_TICKET
    load_own_key(context, loaded)
    if config.truststore is not None and loaded.trusted is not None:
        load_trusted(context, _named(config.truststore), loaded.trusted)
    set_ciphers(context, config.ciphers)
    context.verify_mode = VERIFY_MODES[config.client_auth]
    return context


def _client_context(config: ClientSecurity, loaded: Loaded) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    set_versions(context, config.tls_protocols)
    context.check_hostname = config.verifies_host
    if config.truststore is None or loaded.trusted is None:
        context.load_default_certs()
    else:
        load_trusted(context, _named(config.truststore), loaded.trusted)
    load_own_key(context, loaded)
    set_ciphers(context, config.ciphers)
    return context


def load_own_key(context: ssl.SSLContext, loaded: Loaded) -> None:
    """Load the key and its certificate, if there is one. Raise StoreError."""
    store = loaded.config.keystore
    if store is not None and loaded.key is not None:
        load_key(context, _named(store), loaded.key, _password(loaded.config))


def _password(config: Config) -> str:
    """Return the password of the private key; that of a PKCS #12 file opens its key too."""
    store = config.keystore
    return config.key_password or ("" if store is None else store.password)


def _pem_of(store: Store, password: str) -> bytes:
    if store.pem:
        return store.pem.encode()
    return pem_of(store.setting, store.location, password, store.password)


def _named(store: Store) -> str:
    return f"{store.setting}={store.location}" if store.location else store.setting


def _files(config: Config) -> list[str]:
    stores = (config.keystore, config.truststore)
    return [store.location for store in stores if store is not None and store.location]


def _file_versions(config: Config) -> list[Version | None]:
    return [_version_of(location) for location in _files(config)]


def _version_of(location: str) -> Version | None:
    try:
        status = os.stat(location)
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return None
    # The time of the last change of the file or of its mode: a copy may keep the other times.
    return status.st_ctime_ns, status.st_size, status.st_ino
