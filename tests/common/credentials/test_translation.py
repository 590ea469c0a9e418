"""Kafka's client settings in the spelling of each client library, and what is refused of them."""

import asyncio
import pickle
import ssl
from pathlib import Path

import pytest
from aiokafka.errors import KafkaConnectionError
from confluent_kafka import Producer
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
    pkcs12,
)
from hypothesis import given
from hypothesis import strategies as st

from common.credentials.access import kafka_access
from common.credentials.aiokafka_clients import aiokafka_security
from common.credentials.jaas import KERBEROS_MODULE, OAUTHBEARER_MODULE, SCRAM_MODULE, parse_jaas
from common.credentials.translation import ClientSettingsError, librdkafka_security
from common.process.properties import parse_properties
from millstream.processes.settings_files import (
    PLAIN_MODULE,
    login_text,
    properties_text,
    write_private,
)
from millstream.testing.certificates import CertificateAuthority, IssuedCertificate

PASSWORD = 'p"ss\\word; ü'


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def alice(authority: CertificateAuthority) -> IssuedCertificate:
    return authority.issue("alice")


@pytest.fixture
def settings(authority: CertificateAuthority, alice: IssuedCertificate) -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": login_text(SCRAM_MODULE, username="alice", password=PASSWORD),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(alice.keystore),
        "ssl.endpoint.identification.algorithm": "",
        "ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        "ssl.enabled.protocols": "TLSv1.2,TLSv1.3",
    }


def test_every_setting_reaches_librdkafka(
    settings: dict[str, str], authority: CertificateAuthority, alice: IssuedCertificate
) -> None:
    told = librdkafka_security(settings)
    assert told == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": PASSWORD,
        "ssl.ca.location": str(authority.certificate),
        "ssl.certificate.location": str(alice.keystore),
        "ssl.key.location": str(alice.keystore),
        "ssl.endpoint.identification.algorithm": "none",
        "ssl.cipher.suites": "ECDHE-ECDSA-AES128-GCM-SHA256",
    }
    Producer({"bootstrap.servers": "127.0.0.1:1", **told, "log_level": 0})


def test_every_setting_reaches_aiokafka(settings: dict[str, str]) -> None:
    told = aiokafka_security(librdkafka_security(settings))
    context = told.pop("ssl_context")
    assert told == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "alice",
        "sasl_plain_password": PASSWORD,
    }
    assert isinstance(context, ssl.SSLContext)
    assert not context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert len(context.get_ca_certs()) == 1
    assert context.get_ciphers()[-1]["name"] == "ECDHE-ECDSA-AES128-GCM-SHA256"


def test_host_names_are_checked_unless_a_setting_says_otherwise(settings: dict[str, str]) -> None:
    del settings["ssl.endpoint.identification.algorithm"]
    context = aiokafka_security(librdkafka_security(settings))["ssl_context"]
    assert context.check_hostname
    settings["ssl.endpoint.identification.algorithm"] = "HTTPS"
    assert aiokafka_security(librdkafka_security(settings))["ssl_context"].check_hostname


def test_pkcs12_stores_are_read(
    settings: dict[str, str], alice: IssuedCertificate, tmp_path: Path
) -> None:
    chain = x509.load_pem_x509_certificates(alice.certificate.read_bytes())
    key = load_pem_private_key(alice.key.read_bytes(), None)
    store = tmp_path / "alice.p12"
    store.write_bytes(
        pkcs12.serialize_key_and_certificates(
            b"alice", key, chain[0], chain[1:], BestAvailableEncryption(b"opens-it")
        )
    )
    for kind in ("keystore", "truststore"):
        settings[f"ssl.{kind}.location"] = str(store)
        settings[f"ssl.{kind}.password"] = "opens-it"
    told = librdkafka_security(settings)
    Producer({"bootstrap.servers": "127.0.0.1:1", **told, "log_level": 0})
    assert len(aiokafka_security(told)["ssl_context"].get_ca_certs()) == 1


def test_librdkafkas_own_names_mean_the_same(authority: CertificateAuthority) -> None:
    told = {
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": "hers",
        "ssl.ca.location": str(authority.certificate),
    }
    found = aiokafka_security(librdkafka_security(told))
    assert (found["security_protocol"], found["sasl_mechanism"]) == ("SASL_SSL", "PLAIN")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"security.protocol": "TLS"}, "security.protocol=TLS: there are PLAINTEXT"),
        ({"sasl.mechanism": ""}, "security.protocol=SASL_SSL needs sasl.mechanism"),
        ({"sasl.mechanism": "NTLM"}, "sasl.mechanism=NTLM: PLAIN"),
        ({"sasl.mechanism": "GSSAPI"}, "sasl.mechanism is GSSAPI by default"),
        ({"sasl.mechanism": "OAUTHBEARER"}, "OAUTHBEARER takes org"),
        (
            {"sasl.jaas.config": f"{SCRAM_MODULE} required username=a password=b tokenauth=true;"},
            "delegation token",
        ),
        ({"sasl.jaas.config": "x"}, "sasl.jaas.config must be"),
        ({"sasl.jaas.config": f"{SCRAM_MODULE} required username=a;"}, "needs username and"),
        ({"sasl.jaas.config": "x required username=a password=b;"}, "SCRAM-SHA-512 takes org"),
        ({"ssl.truststore.location": "/no/such"}, "ssl.truststore.location=/no/such: No such"),
        ({"ssl.enabled.protocols": "TLSv1.3"}, "ssl.enabled.protocols=TLSv1.3"),
        ({"ssl.endpoint.identification.algorithm": "dns"}, "=dns: https"),
        ({"ssl.cipher.suites": "TLS_NO_WITH_NONE"}, "cipher"),
    ],
)
def test_what_cannot_be_used_is_refused_by_its_name(
    settings: dict[str, str], changed: dict[str, str], said: str
) -> None:
    with pytest.raises(ClientSettingsError, match=said) as refused:
        aiokafka_security(librdkafka_security({**settings, **changed}))
    assert PASSWORD not in str(refused.value)


def test_a_java_store_is_refused_with_the_command_that_converts_it(
    settings: dict[str, str], tmp_path: Path
) -> None:
    store = tmp_path / "store.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed" + bytes(100))
    with pytest.raises(ClientSettingsError, match="keytool -importkeystore"):
        librdkafka_security({**settings, "ssl.truststore.location": str(store)})


# --- the file ---


def test_a_file_has_what_every_client_needs(settings: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    registry = {"basic.auth.user.info": "alice:hers"}
    write_private(file, properties_text({**settings, **registry, "client.id": "me"}))
    assert file.stat().st_mode & 0o777 == 0o600
    access = kafka_access("one:1,two:2", str(file))
    assert access.java() == {"bootstrap.servers": "one:1,two:2", **settings}
    assert access.registry == registry
    assert access.librdkafka()["sasl.password"] == PASSWORD
    assert access.aiokafka()["bootstrap_servers"] == "one:1,two:2"
    assert PASSWORD not in repr(access)
    again = pickle.loads(pickle.dumps(access))  # Spark sends it to its workers.
    assert again.librdkafka() == access.librdkafka()


def test_without_a_file_a_cluster_is_open() -> None:
    access = kafka_access("one:1")
    assert access.librdkafka() == {"bootstrap.servers": "one:1"}
    assert access.aiokafka() == {"bootstrap_servers": "one:1"}


@pytest.mark.parametrize("content", [b"\xff\xfe", None])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "client.properties"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ClientSettingsError, match=r"client\.properties cannot be read"):
        kafka_access("one:1", str(file))


_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r\x85\u2028\u2029"))


@given(st.dictionaries(_TEXT.filter(bool), _TEXT))
def test_properties_are_read_as_they_were_written(properties: dict[str, str]) -> None:
    assert parse_properties(properties_text(properties)) == properties


@given(_TEXT)
def test_a_login_is_read_as_it_was_written(password: str) -> None:
    login = parse_jaas(login_text(PLAIN_MODULE, username="alice", password=password))
    assert login.options == {"username": "alice", "password": password}


def test_what_the_protocol_has_no_use_for_is_left_out(settings: dict[str, str]) -> None:
    found = librdkafka_security({**settings, "security.protocol": "PLAINTEXT"})
    assert found == {"security.protocol": "PLAINTEXT"}
    found = librdkafka_security({**settings, "security.protocol": "SSL"})
    assert not [name for name in found if name.startswith("sasl.")]


# --- OAUTHBEARER and GSSAPI ---

URL = "sasl.oauthbearer.token.endpoint.url"
ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
TOKENS = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.jaas.config": login_text(OAUTHBEARER_MODULE, clientId="a", clientSecret=PASSWORD),
    URL: "https://issuer.example/token",
    ALLOWED: "https://issuer.example/token",
}


def test_a_token_is_read_by_a_function_of_both_libraries(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a.b.c")
    told = librdkafka_security({**TOKENS, URL: file.as_uri(), ALLOWED: file.as_uri()})
    assert set(told) == {"security.protocol", "sasl.mechanism", "oauth_cb"}
    assert told["oauth_cb"]("")[0] == "a.b.c"
    Producer({"bootstrap.servers": "127.0.0.1:1", **told, "log_level": 0})
    assert pickle.loads(pickle.dumps(told)) == told  # Spark sends it to its workers.

    async def read() -> str:
        token: str = await aiokafka_security(told)["sasl_oauth_token_provider"].token()
        return token

    assert asyncio.run(read()) == "a.b.c"
    file.unlink()
    with pytest.raises(KafkaConnectionError, match="no token from file"):
        asyncio.run(read())


def test_no_secret_of_an_issuer_is_shown() -> None:
    assert PASSWORD not in repr(librdkafka_security(TOKENS))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({URL: ""}, "OAUTHBEARER needs file://"),
        ({URL: "file:///etc/passwd"}, "must be one of those in"),
        ({"sasl.jaas.config": f"{OAUTHBEARER_MODULE} required;"}, "needs clientId"),
        ({"sasl.oauthbearer.jwks.endpoint.url": "x"}, "is not built for clients"),
        (
            {"sasl.jaas.config": f"{OAUTHBEARER_MODULE} required clientId=a extension_x=y;"},
            "extensions are not built",
        ),
    ],
)
def test_a_token_that_cannot_be_had_is_refused(changed: dict[str, str], said: str) -> None:
    with pytest.raises(ClientSettingsError, match=said):
        librdkafka_security({**TOKENS, **changed})


KERBEROS = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "GSSAPI",
    "sasl.kerberos.service.name": "kafka",
    "sasl.jaas.config": login_text(
        KERBEROS_MODULE, useKeyTab="true", keyTab="/no/such", principal="me@EXAMPLE"
    ),
}


def test_a_library_that_knows_no_kerberos_is_told_of_at_the_start() -> None:
    """The wheels of confluent-kafka are built without it."""
    with pytest.raises(ClientSettingsError, match=r"built without it.+or use SCRAM-SHA-512"):
        librdkafka_security(KERBEROS)


def test_a_program_without_librdkafka_needs_a_ticket_at_the_start(tmp_path: Path) -> None:
    pytest.importorskip("gssapi")
    file = tmp_path / "client.properties"
    write_private(file, properties_text(KERBEROS))
    with pytest.raises(ClientSettingsError, match="no Kerberos ticket for me@EXAMPLE from /no"):
        kafka_access("one:1", str(file), needs_librdkafka=False)
