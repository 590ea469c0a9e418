"""TLS contexts of listeners, made of Kafka's settings and made again when a file changes.

A store is PEM text, a PEM file (the private key and its certificate chain in one file, or trusted
certificates), or a PKCS #12 file. The first bytes of a file decide its type: Java's JKS type reads
PKCS #12 files too, so `ssl.keystore.type` is often wrong. A real JKS file is refused.
"""

import logging
import os
import ssl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from broker.config.security_config import ClientSecurity, Store, TlsConfig
from broker.config.sources import invalid
from broker.errors import KafkaError

log = logging.getLogger("millrace.tls")

JKS_MAGIC = b"\xfe\xed\xfe\xed"
PEM_START = b"-----BEGIN "
MAX_STORE_BYTES = 1 << 20
CHECK_INTERVAL_SECONDS = 1.0
"""The shortest time between two checks for a changed file; an accepted connection checks."""
VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
VERIFY_MODES = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


class TlsContexts:
    """Owns the TLS context of one listener."""

    def __init__(self, config: TlsConfig, now: Callable[[], float]) -> None:
        """Make the first context; raises KafkaError(INVALID_CONFIG)."""
        self._config = config
        self._now = now
        self._checked_at = now()
        self._versions = self._file_versions()
        self._context = make_context(config)

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
            self._context = make_context(self._config)
        except KafkaError as error:
            log.error("TLS files changed and cannot be used: %s", error.message)
        else:
            log.info("TLS files reloaded keystore=%s", self._config.keystore.location)

    def _file_versions(self) -> list[tuple[int, int, int] | None]:
        stores = (self._config.keystore, self._config.truststore)
        return [
            _version_of(store.location) for store in stores if store is not None and store.location
        ]


def _version_of(location: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(location)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def make_context(config: TlsConfig) -> ssl.SSLContext:
    """Make a server's context; raises KafkaError(INVALID_CONFIG) that names the setting."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    versions = [VERSIONS[name] for name in config.protocols]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    # A client that resumes a session with a ticket would keep rights that were withdrawn.
    context.options |= ssl.OP_NO_TICKET
    _load_key(context, config.keystore, config.key_password)
    if config.truststore is not None:
        _load_trusted(context, config.truststore)
    context.verify_mode = VERIFY_MODES[config.client_auth]
    _set_ciphers(context, config.ciphers)
    return context


def make_client_context(config: ClientSecurity) -> ssl.SSLContext:
    """Make the context to connect to other nodes with; raises KafkaError(INVALID_CONFIG)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    versions = [VERSIONS[name] for name in config.tls_protocols]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    context.check_hostname = config.verifies_host
    if config.truststore is None:
        context.load_default_certs()
    else:
        _load_trusted(context, config.truststore)
    if config.keystore is not None:
        _load_key(context, config.keystore, config.key_password)
    _set_ciphers(context, config.ciphers)
    return context


def _load_key(context: ssl.SSLContext, store: Store, key_password: str) -> None:
    password = key_password or store.password
    pem = _pem_of(store, password)
    with _private_file(pem) as path:
        try:
            # A callable, so that an encrypted key without a password never asks the terminal.
            context.load_cert_chain(path, password=lambda: password)
        except (ssl.SSLError, OSError, ValueError) as error:
            raise invalid(
                f"{_named(store)}: no private key with its certificate: {error}"
            ) from error


def _load_trusted(context: ssl.SSLContext, store: Store) -> None:
    pem = _pem_of(store, store.password)
    try:
        context.load_verify_locations(cadata=pem.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise invalid(f"{_named(store)}: no trusted certificates: {error}") from error


def _pem_of(store: Store, password: str) -> bytes:
    if store.pem:
        return store.pem.encode()
    try:
        with open(store.location, "rb") as file:
            data = file.read(MAX_STORE_BYTES + 1)
    except OSError as error:
        raise invalid(f"{_named(store)}: {error.strerror}") from error
    if len(data) > MAX_STORE_BYTES:
        raise invalid(f"{_named(store)}: more than {MAX_STORE_BYTES} bytes")
    if PEM_START in data:
        return data
    if data.startswith(JKS_MAGIC):
        raise invalid(
            f"{_named(store)} is a JKS file, which only Java reads; convert it: keytool "
            f"-importkeystore -srckeystore {Path(store.location).name} -destkeystore store.p12 "
            "-deststoretype PKCS12"
        )
    return _pem_of_pkcs12(store, data, password)


def _pem_of_pkcs12(store: Store, data: bytes, password: str) -> bytes:
    try:
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
            pkcs12,
        )
    except ImportError as error:
        raise invalid(
            f"{_named(store)} is not PEM; reading PKCS #12 needs: pip install 'millrace[security]'"
        ) from error
    try:
        # The store's own password opens it, even if the key in it has another password.
        found = pkcs12.load_pkcs12(data, (store.password or password).encode() or None)
    except ValueError as error:
        raise invalid(f"{_named(store)}: neither PEM nor PKCS #12, or a wrong password") from error
    parts = [
        each.certificate.public_bytes(Encoding.PEM)
        for each in (found.cert, *found.additional_certs)
        if each is not None
    ]
    if found.key is not None:
        parts.append(found.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return b"".join(parts)


@contextmanager
def _private_file(pem: bytes) -> Iterator[str]:
    """Yield a file that only this user can read: OpenSSL reads a key from a file only."""
    with tempfile.NamedTemporaryFile(prefix="millrace-", suffix=".pem") as file:
        file.write(pem)
        file.flush()
        yield file.name


def _named(store: Store) -> str:
    return f"{store.setting}={store.location}" if store.location else store.setting


def _set_ciphers(context: ssl.SSLContext, names: tuple[str, ...]) -> None:
    # OpenSSL has a list of its own for TLS 1.3, which Python cannot shorten.
    older = [openssl_name(name) for name in names if "_WITH_" in name]
    if not names:
        return
    if not older:
        if context.minimum_version != ssl.TLSVersion.TLSv1_3:
            raise invalid(
                "ssl.cipher.suites names no suite of TLSv1.2; add one, or set "
                "ssl.enabled.protocols=TLSv1.3"
            )
        return
    try:
        context.set_ciphers(":".join(older))
    except ssl.SSLError as error:
        raise invalid(f"ssl.cipher.suites={','.join(names)}: OpenSSL knows none") from error


def openssl_name(name: str) -> str:
    """Return OpenSSL's name of a suite with a name of RFC 5246, as Java and Kafka write it."""
    exchange, _, cipher = name.removeprefix("TLS_").partition("_WITH_")
    cipher = cipher.replace("AES_", "AES").replace("_CBC_", "_").replace("_", "-")
    if cipher.startswith("CHACHA20"):
        cipher = cipher.removesuffix("-SHA256")
    prefix = "" if exchange == "RSA" else exchange.replace("_", "-") + "-"
    return prefix + cipher
