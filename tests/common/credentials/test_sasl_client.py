"""The client's side of SASL against the server's, and against servers that lie."""

import pytest

from broker.security.oauthbearer import InvalidToken, OauthBearerServer, TokenClaims
from broker.security.plain import PlainServer
from broker.security.sasl_session import MechanismServer
from broker.security.scram import ScramServer
from common.credentials.errors import AuthenticationFailed
from common.credentials.sasl_client import OauthBearerClient, ScramClient, client_of
from common.credentials.scram import (
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    ScramMechanism,
    credential_from,
    salted_password,
)


def about_unknown(user: str, is_token: bool) -> tuple[bytes, int]:
    return b"salt", 4096


def scram_server(mechanism: ScramMechanism, user: str) -> ScramServer:
    salted = salted_password(mechanism, "secret", b"salt", 4096)
    credential = credential_from(mechanism, salted, b"salt", 4096)
    return ScramServer(mechanism, {user: credential}.get, "server", about_unknown)


@pytest.mark.parametrize("user", ["broker", "a,b=c", "grün"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_client_and_server_agree(mechanism: str, user: str) -> None:
    for password, is_right in (("secret", True), ("other", False)):
        server: MechanismServer = PlainServer({user: "secret"})
        if mechanism != "PLAIN":
            kind = SCRAM_SHA_256 if mechanism == "SCRAM-SHA-256" else SCRAM_SHA_512
            server = scram_server(kind, user)
        client = client_of(mechanism, user, password, "client")
        token: bytes | None = client.first()
        try:
            while token is not None:
                token = client.receive(server.receive(token))
        except AuthenticationFailed:
            assert not is_right
        assert server.is_complete is is_right


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"r=other,s=c2FsdA==,i=4096",
        b"r=client,s=c2FsdA==,i=4096",
        b"r=clientx,s=%%,i=4096",
        b"r=clientx,s=c2FsdA==,i=many",
        b"r=clientx,s=c2FsdA==,i=99999999",
        b"r=clientx,s=c2FsdA==,i=0",
        b"e=other-error",
        b"\xff",
    ],
)
def test_a_wrong_answer_of_the_server_ends_it(answer: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        ScramClient(SCRAM_SHA_256, "broker", "secret", "client").receive(answer)


def test_a_server_that_does_not_know_the_credential_is_found_out() -> None:
    client = ScramClient(SCRAM_SHA_256, "broker", "secret", "client")
    client.receive(b"r=clientx,s=c2FsdA==,i=4096")
    with pytest.raises(AuthenticationFailed, match="did not prove"):
        client.receive(b"v=AAAA")


def test_a_token_needs_one_message_and_its_refusal_another() -> None:
    def validate(token: str) -> TokenClaims:
        if token != "good.token":
            raise InvalidToken("it is not the one")
        return TokenClaims("alice", 1)

    server, client = OauthBearerServer(validate), OauthBearerClient("good.token")
    assert client.receive(server.receive(client.first())) is None
    assert server.user == "alice"
    server, client = OauthBearerServer(validate), OauthBearerClient("other.token")
    second = client.receive(server.receive(client.first()))
    assert second is not None
    with pytest.raises(AuthenticationFailed, match="not the one"):
        server.receive(second)
    with pytest.raises(AuthenticationFailed, match="refuses the token"):
        client.receive(b"{}")
