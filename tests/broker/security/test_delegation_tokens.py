"""A delegation token as a login of SCRAM: its id is the user, its secret is the password."""

from base64 import b64encode

import pytest

from broker.security.delegation_tokens import MAX_CREDENTIALS, TokenCredentials, token_hmac
from broker.security.scram import ScramServer, TokenLogin
from common.credentials.errors import AuthenticationFailed
from common.credentials.sasl_client import client_of
from common.credentials.scram import SCRAM_SHA_256, SCRAM_SHA_512, ScramMechanism

TOKEN = "VcJdJeHPTbmIQVv9FE5rVQ"
SECRET = b64encode(token_hmac("k1", TOKEN)).decode()


def test_the_secret_is_that_of_apache_kafka() -> None:
    assert SECRET == (
        "YT1QvLtIi3BRmVpAN1h1TbOQ29KNYRmjk6RofveDutxm8CIYpHAJICoFnqPU4IDjug5W5NXhUB7u6PTGcQ8iFA=="
    )


def about_unknown(user: str, is_token: bool) -> tuple[bytes, int]:
    return b"salt", 4096


def logged_in(
    mechanism: ScramMechanism, user: str, password: str, *, is_token: bool
) -> ScramServer:
    credentials = TokenCredentials("k1")

    def find_token(token_id: str) -> TokenLogin | None:
        if token_id != TOKEN:
            return None
        return TokenLogin(credentials.of(mechanism, token_id), "ann", 7)

    server = ScramServer(mechanism, lambda user: None, "server", about_unknown, find_token)
    client = client_of(mechanism.name, user, password, "client", is_token=is_token)
    token: bytes | None = client.first()
    while token is not None:
        token = client.receive(server.receive(token))
    return server


@pytest.mark.parametrize("mechanism", [SCRAM_SHA_256, SCRAM_SHA_512])
def test_a_client_with_a_token_is_its_owner(mechanism: ScramMechanism) -> None:
    server = logged_in(mechanism, TOKEN, SECRET, is_token=True)
    assert server.is_complete
    assert (server.user, server.is_by_token, server.expires_at_ms) == ("ann", True, 7)


@pytest.mark.parametrize(
    ("user", "password", "is_token"),
    [
        (TOKEN, SECRET, False),
        (TOKEN, "wrong", True),
        ("another", SECRET, True),
        ("ann", SECRET, True),
    ],
)
def test_anything_else_is_refused(user: str, password: str, is_token: bool) -> None:
    with pytest.raises(AuthenticationFailed):
        logged_in(SCRAM_SHA_256, user, password, is_token=is_token)


def test_the_credentials_that_are_kept_are_bounded() -> None:
    credentials = TokenCredentials("k1")
    first = credentials.of(SCRAM_SHA_256, "0")
    assert credentials.of(SCRAM_SHA_256, "0") is first
    credentials._made.update({(str(number), 1): first for number in range(1, MAX_CREDENTIALS)})
    credentials.of(SCRAM_SHA_512, "0")
    assert len(credentials._made) == MAX_CREDENTIALS
    assert credentials.of(SCRAM_SHA_256, "0") == first
