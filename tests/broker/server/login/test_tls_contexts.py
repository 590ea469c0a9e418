"""Contexts of every kind of store, shaken hands with over memory, and reloaded."""

import os
import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

from broker.config.security_config import (
    ListenerSecurity,
    TlsConfig,
    read_client_security,
    read_security_config,
)
from broker.config.values import Values
from broker.server.login.tls_contexts import (
    CHECK_INTERVAL_SECONDS,
    TlsContexts,
    make_context,
)
from common.credentials.tls import openssl_name
from common.kafka.errors import KafkaError
from millstream.testing.certificates import CertificateAuthority, IssuedCertificate


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("authority")


@pytest.fixture(scope="module")
def authority(folder: Path) -> CertificateAuthority:
    return CertificateAuthority(folder)


@pytest.fixture(scope="module")
def broker(authority: CertificateAuthority) -> IssuedCertificate:
    return authority.issue("broker")


def tls(**settings: str) -> TlsConfig:
    given = {name.replace("__", "."): value for name, value in settings.items()}
    security = read_security_config(Values(given), ["SSL"])
    found: ListenerSecurity = security.listeners["SSL"]
    assert found.tls is not None
    return found.tls


def shake_hands(
    server: ssl.SSLContext, authority: CertificateAuthority, client: IssuedCertificate | None = None
) -> Any:
    """Return what the server knows of its client's certificate."""
    context = ssl.create_default_context(cafile=str(authority.certificate))
    if client is not None:
        context.load_cert_chain(client.keystore)
    return joined(server, context)


def joined(server: ssl.SSLContext, context: ssl.SSLContext) -> Any:
    """Let both sides shake hands; return what the server knows of the client's certificate."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        context.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    waiting = set(ends)
    while waiting:
        for end in list(waiting):
            try:
                end.do_handshake()
                waiting.discard(end)
            except ssl.SSLWantReadError:
                pass
    try:
        ends[0].read(1)  # the verdict of TLS 1.3 on the client's certificate
    except ssl.SSLWantReadError:
        pass
    return ends[1].getpeercert()


def test_a_pem_file_and_pem_text(
    authority: CertificateAuthority, broker: IssuedCertificate
) -> None:
    shake_hands(make_context(tls(ssl__keystore__location=str(broker.keystore))), authority)
    text = tls(
        ssl__keystore__key=broker.key.read_text(),
        ssl__keystore__certificate__chain=broker.certificate.read_text(),
    )
    shake_hands(make_context(text), authority)


def test_pkcs12_with_its_password(
    authority: CertificateAuthority, broker: IssuedCertificate, tmp_path: Path
) -> None:
    key: Any = load_pem_private_key(broker.key.read_bytes(), None)
    own, ca = x509.load_pem_x509_certificates(broker.certificate.read_bytes())
    store = tmp_path / "broker.jks"  # as keytool names it, which makes PKCS #12
    store.write_bytes(
        pkcs12.serialize_key_and_certificates(b"b", key, own, [ca], BestAvailableEncryption(b"s3"))
    )
    given = {"ssl__keystore__location": str(store), "ssl__keystore__type": "JKS"}
    context = make_context(tls(**given, ssl__keystore__password="s3", ssl__key__password="s3"))
    shake_hands(context, authority)
    with pytest.raises(KafkaError, match="wrong password"):
        make_context(tls(**given, ssl__keystore__password="other"))


def test_an_encrypted_key(broker: IssuedCertificate, tmp_path: Path) -> None:
    key: Any = load_pem_private_key(broker.key.read_bytes(), None)
    encrypted = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"s3"))
    store = tmp_path / "broker.pem"
    store.write_bytes(encrypted + broker.certificate.read_bytes())
    make_context(tls(ssl__keystore__location=str(store), ssl__key__password="s3"))
    for password in ("", "other"):
        with pytest.raises(KafkaError, match="no private key"):
            make_context(tls(ssl__keystore__location=str(store), ssl__key__password=password))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "No such file"),
        (b"", "neither PEM"),
        (b"\xfe\xed\xfe\xed\0\0\0\2", "keytool -importkeystore"),
        (b"\x30\x82\x01\x01 rest", "neither PEM"),
        (b"-----BEGIN PRIVATE KEY-----\nAA\n", "no private key"),
        (b"x" * (2 << 20), "more than"),
    ],
)
def test_other_files_are_refused_in_words(data: bytes | None, said: str, tmp_path: Path) -> None:
    store = tmp_path / "store"
    if data is not None:
        store.write_bytes(data)
    with pytest.raises(KafkaError, match=said):
        make_context(tls(ssl__keystore__location=str(store)))


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "store")
    for place in (tmp_path / "store", tmp_path, Path("/dev/zero")):
        with pytest.raises(KafkaError, match=r"not a regular file|Is a directory"):
            make_context(tls(ssl__keystore__location=str(place)))


def test_a_client_must_show_a_certificate_of_the_authority(
    authority: CertificateAuthority, broker: IssuedCertificate, tmp_path: Path
) -> None:
    context = make_context(
        tls(
            ssl__keystore__location=str(broker.keystore),
            ssl__truststore__location=str(authority.certificate),
            ssl__client__auth="required",
        )
    )
    alice = authority.issue("alice")
    assert shake_hands(context, authority, alice)["subject"] == ((("commonName", "alice"),),)
    with pytest.raises(ssl.SSLError):
        shake_hands(context, authority)
    stranger = CertificateAuthority(tmp_path).issue("alice")
    with pytest.raises(ssl.SSLError):
        shake_hands(context, authority, stranger)


def test_changed_files_are_used_and_bad_ones_are_not(
    authority: CertificateAuthority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    now = [0.0]
    store = tmp_path / "broker.pem"
    store.write_bytes(authority.issue("first").keystore.read_bytes())
    contexts = TlsContexts(tls(ssl__keystore__location=str(store)), lambda: now[0])
    first = contexts.current()
    os.replace(authority.issue("second").keystore, store)
    assert contexts.current() is first
    now[0] += CHECK_INTERVAL_SECONDS
    second = contexts.current()
    assert second is not first
    shake_hands(second, authority)
    store.write_text("no key")
    now[0] += CHECK_INTERVAL_SECONDS
    assert contexts.current() is second
    assert "cannot be used" in caplog.text
    store.unlink()
    now[0] += CHECK_INTERVAL_SECONDS
    assert contexts.current() is second


def test_connections_to_other_nodes_use_changed_files_too(
    authority: CertificateAuthority, broker: IssuedCertificate, tmp_path: Path
) -> None:
    now = [0.0]
    trusted = tmp_path / "ca.pem"
    stranger = CertificateAuthority(tmp_path / "stranger")
    trusted.write_bytes(stranger.certificate.read_bytes())
    security = read_client_security(
        {"security.protocol": "SSL", "ssl.truststore.location": str(trusted)}
    )
    contexts = TlsContexts(security, lambda: now[0])
    server = make_context(tls(ssl__keystore__location=str(broker.keystore)))
    with pytest.raises(ssl.SSLError):
        joined(server, contexts.current())
    trusted.write_bytes(authority.certificate.read_bytes())
    now[0] += CHECK_INTERVAL_SECONDS
    joined(server, contexts.current())


def test_protocols_and_cipher_suites(broker: IssuedCertificate) -> None:
    given = {"ssl__keystore__location": str(broker.keystore)}
    only = make_context(tls(**given, ssl__enabled__protocols="TLSv1.3"))
    assert only.minimum_version == ssl.TLSVersion.TLSv1_3
    suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    context = make_context(tls(**given, ssl__cipher__suites=suite))
    names = {each["name"] for each in context.get_ciphers() if each["protocol"] == "TLSv1.2"}
    assert names == {"ECDHE-ECDSA-AES256-GCM-SHA384"}
    for suites in ("TLS_NONE_WITH_NOTHING", "TLS_AES_256_GCM_SHA384"):
        with pytest.raises(KafkaError, match=r"ssl\.cipher\.suites"):
            make_context(tls(**given, ssl__cipher__suites=suites))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
    ],
)
def test_names_of_cipher_suites(name: str, expected: str) -> None:
    assert openssl_name(name) == expected


def test_an_authority_is_opened_again_and_keys_are_private(tmp_path: Path) -> None:
    CertificateAuthority(tmp_path)
    again = CertificateAuthority(tmp_path).issue("a")
    assert again.keystore.stat().st_mode & 0o077 == 0
    assert (tmp_path / "ca.key").stat().st_mode & 0o077 == 0
    for name in ("", "ca", "../x", ".."):
        with pytest.raises(ValueError, match="not a name"):
            CertificateAuthority(tmp_path).issue(name)
