"""Reads keys and certificates: PEM text, a PEM file, or a PKCS #12 file.

The first bytes of a file decide its type: Java's JKS type reads PKCS #12 files too, so
`ssl.keystore.type` is often wrong. A real JKS file is refused.
"""

import os
import stat
from pathlib import Path
from typing import NamedTuple

JKS_MAGIC = b"\xfe\xed\xfe\xed"
PEM_START = b"-----BEGIN "
MAX_STORE_BYTES = 1 << 20


class StoreError(ValueError):
    """A store that cannot be used; the message names the setting and the file."""


class Store(NamedTuple):
    """Where keys or certificates are: a file, or PEM text in the settings themselves."""

    setting: str
    location: str
    pem: str
    password: str

    def read(self) -> bytes:
        """Return the PEM text. Raise StoreError."""
        if self.pem:
            return self.pem.encode()
        return pem_of(self.setting, self.location, self.password)


def pem_of(setting: str, location: str, password: str = "", store_password: str = "") -> bytes:
    """Return the PEM text of the store in a file. Raise StoreError.

    The store's own password opens it, even if the key in it has another password.
    """
    named = f"{setting}={location}"
    data = read_store(setting, location)
    if PEM_START in data:
        return data
    if data.startswith(JKS_MAGIC):
        raise StoreError(
            f"{named} is a JKS file, which only Java reads; convert it: keytool "
            f"-importkeystore -srckeystore {Path(location).name} -destkeystore store.p12 "
            "-deststoretype PKCS12"
        )
    return _pem_of_pkcs12(named, data, store_password or password)


def is_pem(setting: str, location: str) -> bool:
    """Tell whether a file is PEM. Raise StoreError when it cannot be read."""
    return PEM_START in read_store(setting, location)


def read_store(setting: str, location: str) -> bytes:
    """Return the bytes of a store. Raise StoreError."""
    named = f"{setting}={location}"
    try:
        with open(location, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise StoreError(f"{named}: not a regular file")
            data = file.read(MAX_STORE_BYTES + 1)
    except StoreError:
        raise
    except (OSError, ValueError) as error:
        raise StoreError(f"{named}: {getattr(error, 'strerror', error)}") from error
    if len(data) > MAX_STORE_BYTES:
        raise StoreError(f"{named}: more than {MAX_STORE_BYTES} bytes")
    return data


def _without_waiting(path: str, flags: int) -> int:
    """Open a file that a request may have named: a pipe without a writer is not waited for."""
    return os.open(path, flags | os.O_NONBLOCK)


def _pem_of_pkcs12(named: str, data: bytes, password: str) -> bytes:
    try:
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
            pkcs12,
        )
    except ImportError as error:
        raise StoreError(
            f"{named} is not PEM; reading PKCS #12 needs: pip install 'millstream[security]'"
        ) from error
    try:
        found = pkcs12.load_pkcs12(data, password.encode() or None)
    except ValueError as error:
        raise StoreError(f"{named}: neither PEM nor PKCS #12, or a wrong password") from error
    parts = [
        each.certificate.public_bytes(Encoding.PEM)
        for each in (found.cert, *found.additional_certs)
        if each is not None
    ]
    if found.key is not None:
        parts.append(found.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return b"".join(parts)
