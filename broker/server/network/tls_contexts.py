"""TLS contexts, made of Kafka's settings and made again when a file changes.

A store is PEM text, or a file that `millrace.security.stores` reads: a private key and its
certificate chain together, or trusted certificates.
"""

import logging
import os
import ssl
from collections.abc import Callable

from broker.config.security_config import ClientSecurity, TlsConfig
from broker.config.sources import invalid
from broker.errors import KafkaError
from millrace.security.stores import Store, StoreError, pem_of
from millrace.security.tls import load_key, load_trusted, set_ciphers, set_versions

log = logging.getLogger("millrace.tls")

CHECK_INTERVAL_SECONDS = 1.0
"""The shortest time between two checks for a changed file; a new connection checks."""
VERIFY_MODES = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


class TlsContexts:
    """Owns the TLS context of one listener, or of the connections to one kind of listener."""

    def __init__(self, config: TlsConfig | ClientSecurity, now: Callable[[], float]) -> None:
        """Make the first context; raises KafkaError(INVALID_CONFIG)."""
        self._config = config
        self._now = now
        self._checked_at = now()
        self._versions = self._file_versions()
        self._context = _make(config)

    def current(self) -> ssl.SSLContext:
        """Return the context for a new connection, made of the current files.

        A file that cannot be used is logged, and the previous context stays.
        """
        now = self._now()
        if now - self._checked_at >= CHECK_INTERVAL_SECONDS:
            self._checked_at = now
            versions = self._file_versions()
            if versions != self._versions:
                self._versions = versions
                self._reload()
        return self._context

    def _reload(self) -> None:
        try:
            self._context = _make(self._config)
        except KafkaError as error:
            log.error("TLS files changed and cannot be used: %s", error.message)
        else:
            log.info("TLS files reloaded stores=%s", ",".join(self._files()))

    def _files(self) -> list[str]:
        stores = (self._config.keystore, self._config.truststore)
        return [store.location for store in stores if store is not None and store.location]

    def _file_versions(self) -> list[tuple[int, int, int] | None]:
        return [_version_of(location) for location in self._files()]


def _make(config: TlsConfig | ClientSecurity) -> ssl.SSLContext:
    return make_context(config) if isinstance(config, TlsConfig) else make_client_context(config)


def _version_of(location: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(location)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def make_context(config: TlsConfig) -> ssl.SSLContext:
    """Make a server's context; raises KafkaError(INVALID_CONFIG) that names the setting."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    set_versions(context, config.protocols)
    # A client that resumes a session with a ticket would keep rights that were withdrawn.
    context.options |= ssl.OP_NO_TICKET
    try:
        _load_key(context, config.keystore, config.key_password)
        if config.truststore is not None:
            _load_trusted(context, config.truststore)
        set_ciphers(context, config.ciphers)
    except StoreError as error:
        raise invalid(str(error)) from error
    context.verify_mode = VERIFY_MODES[config.client_auth]
    return context


def make_client_context(config: ClientSecurity) -> ssl.SSLContext:
    """Make the context to connect to other nodes with; raises KafkaError(INVALID_CONFIG)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    set_versions(context, config.tls_protocols)
    context.check_hostname = config.verifies_host
    try:
        if config.truststore is None:
            context.load_default_certs()
        else:
            _load_trusted(context, config.truststore)
        if config.keystore is not None:
            _load_key(context, config.keystore, config.key_password)
        set_ciphers(context, config.ciphers)
    except StoreError as error:
        raise invalid(str(error)) from error
    return context


def _load_key(context: ssl.SSLContext, store: Store, key_password: str) -> None:
    password = key_password or store.password
    load_key(context, _named(store), _pem_of(store, password), password)


def _load_trusted(context: ssl.SSLContext, store: Store) -> None:
    load_trusted(context, _named(store), _pem_of(store, store.password))


def _pem_of(store: Store, password: str) -> bytes:
    if store.pem:
        return store.pem.encode()
    return pem_of(store.setting, store.location, password, store.password)


def _named(store: Store) -> str:
    return f"{store.setting}={store.location}" if store.location else store.setting
