"""Fills TLS contexts with keys, certificates, versions and cipher suites in Kafka's spelling."""

import ssl
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from common.credentials.stores import StoreError

VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def load_key(context: ssl.SSLContext, named: str, pem: bytes, password: str) -> None:
    """Load a private key and its certificate chain. Raise StoreError."""
    with _private_file(pem) as path:
        try:
            # A callable, so that an encrypted key without a password never asks the terminal.
            context.load_cert_chain(path, password=lambda: password)
        except (ssl.SSLError, OSError, ValueError) as error:
            raise StoreError(f"{named}: no private key with its certificate: {error}") from error


def load_trusted(context: ssl.SSLContext, named: str, pem: bytes) -> None:
    """Load the certificates that are trusted. Raise StoreError."""
    try:
        context.load_verify_locations(cadata=pem.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise StoreError(f"{named}: no trusted certificates: {error}") from error


def set_versions(context: ssl.SSLContext, names: Sequence[str]) -> None:
    """Set the versions of TLS, each a key of VERSIONS."""
    versions = [VERSIONS[name] for name in names]
    context.minimum_version, context.maximum_version = min(versions), max(versions)


def set_ciphers(context: ssl.SSLContext, names: Sequence[str]) -> None:
    """Set the cipher suites, with names of RFC 5246; none: OpenSSL's own. Raise StoreError."""
    # OpenSSL has a list of its own for TLS 1.3, which Python cannot shorten.
    older = [openssl_name(name) for name in names if "_WITH_" in name]
    if not names:
        return
    if not older:
        if context.minimum_version != ssl.TLSVersion.TLSv1_3:
            raise StoreError(
                "ssl.cipher.suites names no suite of TLSv1.2; add one, or set "
                "ssl.enabled.protocols=TLSv1.3"
            )
        return
    try:
        context.set_ciphers(":".join(older))
    except ssl.SSLError as error:
        raise StoreError(f"ssl.cipher.suites={','.join(names)}: OpenSSL knows none") from error


def openssl_name(name: str) -> str:
    """Return OpenSSL's name of a suite with a name of RFC 5246, as Java and Kafka write it."""
    exchange, _, cipher = name.removeprefix("TLS_").partition("_WITH_")
    cipher = cipher.replace("AES_", "AES").replace("_CBC_", "_").replace("_", "-")
    if cipher.startswith("CHACHA20"):
        cipher = cipher.removesuffix("-SHA256")
    prefix = "" if exchange == "RSA" else exchange.replace("_", "-") + "-"
    return prefix + cipher


@contextmanager
def _private_file(pem: bytes) -> Iterator[str]:
    """Yield a file that only this user can read: OpenSSL reads a key from a file only."""
    with tempfile.NamedTemporaryFile(prefix="millstream-", suffix=".pem") as file:
        file.write(pem)
        file.flush()
        yield file.name
