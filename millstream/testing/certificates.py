"""A certificate authority for tests and laptops: `millstream certificates`.

It creates PEM files with the package `cryptography`: `ca.pem`, and for each name `NAME.pem` (the
private key and certificate chain in one file, for `ssl.keystore.location`), `NAME.key` and
`NAME.crt` (the same in two files, for librdkafka). Only the owner can read private keys. The
authority is not for production, because its own key is in the same folder.
"""

import ipaddress
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from millstream.processes.settings_files import naming

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

VALID_FOR = timedelta(days=825)
CLOCK_DIFFERENCE = timedelta(minutes=5)
"""A certificate is valid from a short time ago, for machines whose clocks are slow."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class IssuedCertificate(NamedTuple):
    """The files of one certificate."""

    keystore: Path
    key: Path
    certificate: Path


class CertificateAuthority:
    """Owns a folder with an authority, which is created at the first use, and its certificates."""

    def __init__(self, folder: Path) -> None:
        """Open or create the authority in a folder; raise ValueError for files of other tools."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.certificate = folder / "ca.pem"
        if self.certificate.exists():
            self._load()
        else:
            self._create()

    def issue(self, name: str, hosts: Sequence[str] = LOOPBACK) -> IssuedCertificate:
        """Issue a certificate `CN=name` for servers at `hosts`, and for clients."""
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID

        if not name or name in {"ca", ".", ".."} or "/" in name or "\0" in name:
            raise ValueError(f"not a name for a certificate: {name!r}")
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [_general_name(host) for host in hosts]
        builder = (
            _builder(_distinguished_name(name), self._ca.subject)
            .public_key(key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            # Two authorities of the same name are told apart by it, and Python 3.13 demands it.
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
            .add_extension(
                x509.ExtendedKeyUsage(
                    [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
                ),
                critical=False,
            )
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = self._sign(builder)
        chain = _pem(certificate) + _pem(self._ca)
        files = IssuedCertificate(
            *(self._folder / f"{name}.{end}" for end in ("pem", "key", "crt"))
        )
        _write_private(files.keystore, _pem_key(key) + chain)
        _write_private(files.key, _pem_key(key))
        with naming(files.certificate):
            files.certificate.write_bytes(chain)
        return files

    def _create(self) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec

        self._key = ec.generate_private_key(ec.SECP256R1())
        name = _distinguished_name("Millstream test authority")
        builder = (
            _builder(name, name)
            .public_key(self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
            )
            .add_extension(
                x509.KeyUsage(
                    digital_signature=True,
                    key_cert_sign=True,
                    crl_sign=True,
                    content_commitment=False,
                    key_encipherment=False,
                    data_encipherment=False,
                    key_agreement=False,
                    encipher_only=False,
                    decipher_only=False,
                ),
                critical=True,
            )
        )
        self._ca = self._sign(builder)
        _write_private(self._folder / "ca.key", _pem_key(self._key))
        with naming(self.certificate):
            self.certificate.write_bytes(_pem(self._ca))

    def _load(self) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        key = load_pem_private_key((self._folder / "ca.key").read_bytes(), password=None)
        if not isinstance(key, EllipticCurvePrivateKey):
            raise ValueError(f"{self._folder / 'ca.key'} is not a key of this tool")
        self._key = key
        self._ca = x509.load_pem_x509_certificate(self.certificate.read_bytes())

    def _sign(self, builder: "x509.CertificateBuilder") -> "x509.Certificate":
        from cryptography.hazmat.primitives import hashes

        return builder.sign(self._key, hashes.SHA256())


def _builder(subject: "x509.Name", issuer: "x509.Name") -> "x509.CertificateBuilder":
    from cryptography import x509

    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_DIFFERENCE)
        .not_valid_after(now + VALID_FOR)
    )


def _distinguished_name(common_name: str) -> "x509.Name":
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(host: str) -> "x509.GeneralName":
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: "x509.Certificate") -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _pem_key(key: "EllipticCurvePrivateKey") -> bytes:
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write_private(path: Path, data: bytes) -> None:
    """Write a file that other users can never read, not even while it is written."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with naming(path), os.fdopen(descriptor, "wb") as file:
        file.write(data)
