"""Which stores may replace those in use, on one listener and between nodes."""

import shutil
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

import millstream.testing.certificates as certificates_module
from broker.config.security_config import SecurityConfig, read_security_config
from broker.config.values import Values
from broker.server.login.node_tls import NodeTls
from common.kafka.errors import ErrorCode, KafkaError
from millstream.testing.certificates import LOOPBACK, CertificateAuthority, IssuedCertificate


@pytest.fixture
def authority(tmp_path: Path) -> CertificateAuthority:
    return CertificateAuthority(tmp_path / "authority")


def again(authority: CertificateAuthority, tmp_path: Path) -> CertificateAuthority:
    """Return the same authority with another folder, so that it overwrites no certificate."""
    folder = tmp_path / f"again-{len(list(tmp_path.iterdir()))}"
    shutil.copytree(authority.certificate.parent, folder)
    return CertificateAuthority(folder)


def security(**settings: str) -> SecurityConfig:
    given = {name.replace("__", "."): value for name, value in settings.items()}
    return read_security_config(Values(given), ["SSL"], inter_broker="SSL")


def stores(issued: IssuedCertificate, trusted: Path, **more: str) -> SecurityConfig:
    return security(
        ssl__keystore__location=str(issued.keystore),
        ssl__truststore__location=str(trusted),
        ssl__client__auth="required",
        **more,
    )


def refusal(old: SecurityConfig, new: SecurityConfig) -> str:
    with pytest.raises(KafkaError) as raised:
        NodeTls(old, lambda: 0.0).check(new)
    assert raised.value.code == ErrorCode.INVALID_REQUEST
    return raised.value.message


def test_the_same_names_and_more_are_allowed(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    old = stores(authority.issue("broker"), authority.certificate)
    other = again(authority, tmp_path)
    new = stores(other.issue("broker", [*LOOPBACK, "broker.example"]), authority.certificate)
    NodeTls(old, lambda: 0.0).check(new)
    assert "lacks names of the old one: DNS:broker.example" in refusal(new, old)
    allowed = stores(
        authority.issue("broker"), authority.certificate, ssl__allow__san__changes="true"
    )
    NodeTls(new, lambda: 0.0).check(allowed)


def test_another_subject_is_refused_unless_it_is_allowed(
    authority: CertificateAuthority,
) -> None:
    old = stores(authority.issue("broker"), authority.certificate)
    new = authority.issue("other")
    told = refusal(old, stores(new, authority.certificate))
    assert "the subject 'CN=other', the old one 'CN=broker'" in told
    allowed = stores(new, authority.certificate, ssl__allow__dn__changes="true")
    NodeTls(old, lambda: 0.0).check(allowed)


def test_a_key_of_another_authority_is_refused_until_it_is_trusted(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    """The authority of a cluster changes in three steps, and no other order is allowed."""
    other = CertificateAuthority(tmp_path / "other")
    both = tmp_path / "both.pem"
    both.write_bytes(authority.certificate.read_bytes() + other.certificate.read_bytes())
    old_key, new_key = authority.issue("broker"), other.issue("broker")
    steps = [
        stores(old_key, authority.certificate),
        stores(old_key, both),
        stores(new_key, both),
        stores(new_key, other.certificate),
    ]
    for before, after in pairwise(steps):
        NodeTls(before, lambda: 0.0).check(after)
    for after in (steps[2], steps[3]):
        assert "do not trust each other" in refusal(steps[0], after)
    assert "do not trust each other" in refusal(steps[0], stores(old_key, other.certificate))


def expired(folder: Path, monkeypatch: pytest.MonkeyPatch, issuer: CertificateAuthority) -> Any:
    """Return a certificate of an authority that was valid until yesterday."""
    real = certificates_module._builder

    def ended(subject: x509.Name, issuer_name: x509.Name) -> x509.CertificateBuilder:
        builder = real(subject, issuer_name)
        builder._not_valid_before = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=9)
        builder._not_valid_after = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=1)
        return builder

    with monkeypatch.context() as patch:
        patch.setattr(certificates_module, "_builder", ended)
        return again(issuer, folder).issue("broker")


def test_an_expired_certificate_is_replaced_and_replaces_none(
    authority: CertificateAuthority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = stores(expired(tmp_path, monkeypatch, authority), authority.certificate)
    new = stores(authority.issue("broker"), authority.certificate)
    NodeTls(old, lambda: 0.0).check(new)
    assert "certificate has expired" in refusal(new, old)


def test_old_stores_are_those_in_use_although_their_files_have_changed(
    authority: CertificateAuthority,
) -> None:
    issued = authority.issue("broker")
    config = stores(issued, authority.certificate)
    tls = NodeTls(config, lambda: 0.0)
    shutil.copy(authority.issue("other").keystore, issued.keystore)
    with pytest.raises(KafkaError, match="the subject 'CN=other'"):
        tls.check(config)
    issued.keystore.write_text("no key")
    with pytest.raises(KafkaError, match=r"listener SSL: ssl.keystore.location=.*neither PEM"):
        tls.check(config)


def test_a_store_is_neither_added_nor_removed(authority: CertificateAuthority) -> None:
    issued = authority.issue("broker")
    without = security(ssl__keystore__location=str(issued.keystore))
    told = refusal(without, stores(issued, authority.certificate))
    assert "A truststore can be exchanged at run time, but not added." in told


def test_settings_that_cannot_be_used_leave_the_old_ones_until_they_can(
    authority: CertificateAuthority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    now = [0.0]
    old = stores(authority.issue("broker"), authority.certificate)
    tls = NodeTls(old, lambda: now[0])
    contexts = tls.of("SSL")
    assert contexts is not None
    first = contexts.current()
    missing = tmp_path / "later.pem"
    new = authority.issue("later")._replace(keystore=missing)
    tls.change(stores(new, authority.certificate))
    assert contexts.current() is first
    assert "cannot be used" in caplog.text
    shutil.copy(authority.issue("later").keystore, missing)
    now[0] += 1.0
    assert contexts.current() is not first
