"""What the log says about a login that fails: the mechanism and the user, and never the secret."""

import base64
import json
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.credentials.jaas import OAUTHBEARER_MODULE
from common.credentials.sasl_client import ScramClient
from common.credentials.scram import SCRAM_SHA_256
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from common.kafka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from millstream.testing import LocalBroker, LocalCluster
from tests.lib.raw_kafka import RawConnection
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

SECRET = "never-in-a-log"
UNSECURED = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured."
    "OAuthBearerUnsecuredValidatorCallbackHandler"
)


def token_of(user: str, *, is_expired: bool) -> str:
    """Return a token without a signature."""
    expires = time.time() + (-3600 if is_expired else 3600)
    claims = {"sub": user, "iat": expires - 60, "exp": expires, "note": SECRET}
    parts = [json.dumps(each).encode() for each in ({"alg": "none"}, claims)]
    return ".".join(base64.urlsafe_b64encode(each).rstrip(b"=").decode() for each in parts) + "."


def bearer(user: str) -> bytes:
    return f"n,,\x01auth=Bearer {token_of(user, is_expired=True)}\x01\x01".encode()


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    names = "listener.name.sasl_ssl.oauthbearer.sasl."
    with LocalBroker(
        security="sasl_ssl",
        connection_failed_authentication_delay_ms=0,
        **{
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,OAUTHBEARER",
            f"{names}server.callback.handler.class": UNSECURED,
            f"{names}jaas.config": f"{OAUTHBEARER_MODULE} required;",
        },
    ) as started:
        yield started


def fail(broker: LocalBroker, mechanism: str, *tokens: bytes) -> str:
    """Fail to log in; return the broker's last line about it."""
    before = len(broker.log())
    with RawConnection(broker.bootstrap_servers) as connection:
        context: ssl.SSLContext = broker.client_settings("aiokafka")["ssl_context"]
        connection.socket = context.wrap_socket(connection.socket, server_hostname="localhost")
        connection.ask(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism=mechanism))
        for token in tokens:
            request = SaslAuthenticateRequest(auth_bytes=token)
            connection.ask(ApiKey.SASL_AUTHENTICATE, 1, request)

    def lines() -> list[str]:
        found = broker.log()[before:].splitlines()
        return [line for line in found if "authentication failed" in line]

    until(lambda: len(lines()) == 1)
    return lines()[0]


@pytest.mark.parametrize(
    ("mechanism", "tokens", "user"),
    [
        ("PLAIN", [f"\0alice\0{SECRET}".encode()], "'alice'"),
        ("PLAIN", [f"admin\0alice\0{SECRET}".encode()], "'alice'"),
        ("PLAIN", [f"\0a\r\nforged\x1b[31m\0{SECRET}".encode()], r"'a\r\nforged\x1b[31m'"),
        ("PLAIN", [f"\0{'x' * 3_000}\0{SECRET}".encode()], f"'{'x' * 200}'"),
        ("PLAIN", [b"\xff\0x"], "''"),
        ("SCRAM-SHA-256", [b"n,,n=bob,r=abc", b"c=biws,r=wrong,p=AAAA"], "'bob'"),
        ("OAUTHBEARER", [bearer("carol"), b"\1"], "'carol'"),
        ("OAUTHBEARER", [b"n,,\1auth=Bearer opaque\1\1", b"\1"], "''"),
    ],
    ids=["plain", "authzid", "forged", "long", "malformed", "scram", "oauth", "opaque"],
)
def test_the_log_names_mechanism_and_user(
    broker: LocalBroker, mechanism: str, tokens: list[bytes], user: str
) -> None:
    line = fail(broker, mechanism, *tokens)
    assert f" mechanism={mechanism} user={user} reason=" in line
    assert SECRET not in broker.log()


def test_the_real_client_side_of_scram_is_named_too(broker: LocalBroker) -> None:
    client = ScramClient(SCRAM_SHA_256, "dave", SECRET, "nonce")
    line = fail(broker, "SCRAM-SHA-256", client.first(), b"c=biws,r=nonce,p=AAAA")
    assert "mechanism=SCRAM-SHA-256 user='dave'" in line


def test_a_node_says_as_whom_it_failed_to_log_in(tmp_path: Path) -> None:
    """The controller accepts tokens; the broker's has expired."""
    token = tmp_path / "token"
    token.write_text(token_of("node-7", is_expired=False))
    names = "listener.name.controller.oauthbearer.sasl."
    settings = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.controller.protocol": "OAUTHBEARER",
        f"{names}server.callback.handler.class": UNSECURED,
        f"{names}jaas.config": f"{OAUTHBEARER_MODULE} required;",
        "sasl.oauthbearer.token.endpoint.url": token.as_uri(),
        "org.apache.kafka.sasl.oauthbearer.allowed.urls": token.as_uri(),
    }
    with LocalCluster(brokers=1, controllers=1, has_links=False, **settings) as cluster:
        token.write_text(token_of("node-7", is_expired=True))
        (controller,) = cluster.controller_ids
        cluster.stop(controller)
        cluster.start(controller)
        until(lambda: "authentication failed" in cluster.log(1))
        said = "authentication failed mechanism=OAUTHBEARER user='node-7'"
        assert said in cluster.log(1)
        heard = "mechanism=OAUTHBEARER user='node-7' reason=invalid token"
        until(lambda: heard in cluster.log(controller))
        assert SECRET not in cluster.log(1) + cluster.log(controller)
