"""The table of `sasl_session`, cell by cell."""

import pytest

from broker.security.plain import PlainServer
from broker.security.sasl_session import SaslSession, State
from common.credentials.errors import AuthenticationFailed

RIGHT, OTHER, WRONG = b"\0alice\0a", b"\0bob\0b", b"\0alice\0x"


def session() -> SaslSession:
    return SaslSession(
        ["PLAIN", "SCRAM-SHA-256"], lambda mechanism: PlainServer({"alice": "a", "bob": "b"})
    )


def test_handshake_then_token_authenticates() -> None:
    made = session()
    assert made.handshake("PLAIN", 1)
    assert (made.state, made.takes_bare_tokens, made.principal) == (
        State.AUTHENTICATING,
        False,
        None,
    )
    assert made.authenticate(RIGHT) == b""
    assert (made.state, made.principal) == (State.COMPLETE, "User:alice")


def test_the_old_handshake_takes_bare_tokens() -> None:
    made = session()
    assert made.handshake("PLAIN", 0)
    assert made.takes_bare_tokens


def test_an_unknown_mechanism_ends_it() -> None:
    made = session()
    assert not made.handshake("GSSAPI", 1)
    assert made.state is State.FAILED
    with pytest.raises(AuthenticationFailed):
        made.handshake("PLAIN", 1)


def test_a_wrong_token_ends_it() -> None:
    made = session()
    made.handshake("PLAIN", 1)
    with pytest.raises(AuthenticationFailed):
        made.authenticate(WRONG)
    assert (made.state, made.principal) == (State.FAILED, None)
    with pytest.raises(AuthenticationFailed):
        made.authenticate(RIGHT)


def test_tokens_before_a_handshake_and_a_second_handshake_are_refused() -> None:
    made = session()
    with pytest.raises(AuthenticationFailed):
        made.authenticate(RIGHT)
    made = session()
    made.handshake("PLAIN", 1)
    with pytest.raises(AuthenticationFailed):
        made.handshake("PLAIN", 1)


@pytest.mark.parametrize(
    ("mechanism", "token", "is_right"),
    [("PLAIN", RIGHT, True), ("PLAIN", OTHER, False), ("SCRAM-SHA-256", RIGHT, False)],
)
def test_a_session_authenticates_again_as_the_same_principal(
    mechanism: str, token: bytes, is_right: bool
) -> None:
    made = session()
    made.handshake("PLAIN", 1)
    made.authenticate(RIGHT)

    def again() -> None:
        made.handshake(mechanism, 1)
        made.authenticate(token)

    if is_right:
        again()
        assert made.state is State.COMPLETE
    else:
        with pytest.raises(AuthenticationFailed):
            again()
        assert made.state is State.FAILED
    assert made.principal == "User:alice"
