"""The users that an HTTP server lets in, the settings of its file, and changed certificates."""

import base64
import os
import ssl
from pathlib import Path

import pytest

from common.credentials.registry import registry_access
from common.credentials.translation import ClientSettingsError
from common.http.security import OPEN, HttpSecurity, check_listener, http_security
from millstream.processes.settings_files import properties_text, write_private
from millstream.testing.certificates import CertificateAuthority


@pytest.fixture
def authority(tmp_path: Path) -> CertificateAuthority:
    return CertificateAuthority(tmp_path / "authority")


@pytest.fixture
def settings(tmp_path: Path, authority: CertificateAuthority) -> dict[str, str]:
    write_private(tmp_path / "users", properties_text({"anna": "hers", "ben": "his: own"}))
    return {
        "ssl.keystore.location": str(authority.issue("server").keystore),
        "ssl.truststore.location": str(authority.certificate),
        "authentication.method": "BASIC",
        "authentication.users.file": str(tmp_path / "users"),
    }


def read(tmp_path: Path, settings: dict[str, str]) -> HttpSecurity:
    write_private(tmp_path / "http.properties", properties_text(settings))
    return http_security(str(tmp_path / "http.properties"))


def basic(pair: str) -> str:
    return "Basic " + base64.b64encode(pair.encode()).decode()


def test_users_are_let_in_and_probes_for_everybody(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    security = read(tmp_path, settings)
    for pair in ("anna:hers", "ben:his: own"):
        assert security.lets_in("/metrics", basic(pair))
    wrong = ["", "Basic", "Basic !", "Basic \xff", "Bearer x", basic("anna"), basic("anna:his")]
    for header in (*wrong, basic("anna:hers")[:-2], basic(":"), "basic " + "A" * 100_000):
        assert not security.lets_in("/metrics", header), header[:30]
        assert security.lets_in("/health/live", header)
    assert "hers" not in repr(security)


def test_a_wrong_password_is_logged_with_its_user(
    tmp_path: Path, settings: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    security = read(tmp_path, settings)
    with caplog.at_level("INFO", "common.credentials"):
        assert not security.lets_in("/metrics", basic("anna\r\nforged:a-secret"))
        assert not security.lets_in("/" + "p" * 1_000, basic("x" * 1_000))
    first, second = caplog.messages
    assert first == r"HTTP authentication failed user='anna\r\nforged' path='/metrics'"
    assert len(second) < 500
    assert "secret" not in caplog.text


def test_without_a_file_everybody_is_let_in_over_http() -> None:
    assert http_security("") is OPEN
    assert (OPEN.scheme, OPEN.context(), OPEN.peer_context()) == ("http", None, None)
    assert OPEN.lets_in("/metrics", "")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"ssl.keystore": "x"}, "ssl.keystore is no setting"),
        ({"authentication.method": "BEARER"}, "NONE or BASIC"),
        ({"authentication.users.file": ""}, "needs authentication.users.file"),
        ({"authentication.users.file": "/no/such"}, "/no/such cannot be read"),
        ({"ssl.keystore.location": "/no/such"}, "ssl.keystore.location=/no/such"),
        ({"ssl.client.auth": "maybe"}, "ssl.client.auth=maybe"),
        ({"ssl.client.auth": "required", "ssl.truststore.location": ""}, "needs ssl.truststore"),
        ({"ssl.enabled.protocols": "SSLv3"}, "ssl.enabled.protocols"),
    ],
)
def test_what_cannot_be_used_is_refused(
    tmp_path: Path, settings: dict[str, str], changed: dict[str, str], said: str
) -> None:
    with pytest.raises(ClientSettingsError, match=said):
        read(tmp_path, {**settings, **changed})


def test_a_changed_certificate_is_used_for_the_next_connection(
    tmp_path: Path, settings: dict[str, str], authority: CertificateAuthority
) -> None:
    security = read(tmp_path, settings)
    first = security.context()
    assert security.context() is first
    os.replace(authority.issue("other").keystore, settings["ssl.keystore.location"])
    second = security.context()
    assert second is not None
    assert second is not first
    Path(settings["ssl.keystore.location"]).write_text("no certificate")
    assert security.context() is second


def test_clients_show_a_certificate_where_it_is_required(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    security = read(tmp_path, {**settings, "ssl.client.auth": "required"})
    context = security.context()
    assert context is not None
    assert context.verify_mode is ssl.CERT_REQUIRED
    peers = security.peer_context()
    assert peers is not None
    assert len(peers.get_ca_certs()) == 1


@pytest.mark.parametrize("listener", ["http://127.0.0.1:1", "HTTPS://127.0.0.1:1"])
def test_a_listener_is_served_as_its_url_says(
    tmp_path: Path, settings: dict[str, str], listener: str
) -> None:
    secured = read(tmp_path, settings)
    fits, other = (OPEN, secured) if listener.startswith("http:") else (secured, OPEN)
    check_listener(fits, listener)
    with pytest.raises(ClientSettingsError, match=r"ssl\.keystore\.location"):
        check_listener(other, listener)


def test_a_client_of_the_registry_has_what_the_serialisers_say(settings: dict[str, str]) -> None:
    trust = {"schema.registry.ssl.truststore.location": settings["ssl.truststore.location"]}
    context, user = registry_access(
        {
            **trust,
            "basic.auth.credentials.source": "USER_INFO",
            "schema.registry.basic.auth.user.info": "anna:a:b",
        }
    )
    assert context is not None
    assert user == ("anna", "a:b")
    assert registry_access({}) == (None, None)
    for wrong in (
        {"basic.auth.credentials.source": "SASL_INHERIT"},
        {"basic.auth.credentials.source": "USER_INFO"},
        {"schema.registry.url": "http://x"},
    ):
        with pytest.raises(ClientSettingsError):
            registry_access(wrong)
