"""GSSAPI: the exchange around a Kerberos context, and the short names of principals."""

import pytest

from broker.security.gssapi_server import MAX_TOKEN_BYTES, OFFER, GssapiServer
from broker.security.kerberos_names import ShortNames, parse_kerberos_principal
from common.credentials.errors import AuthenticationFailed
from common.credentials.gssapi_client import GssapiClient

ALICE = "alice@TEST.EXAMPLE"


class Context:
    """A context that takes some tokens; a wrapped message begins with W."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)
        self.initiator = ALICE

    @property
    def is_complete(self) -> bool:
        return not self.answers

    def step(self, token: bytes) -> bytes:
        if token == b"wrong":
            raise AuthenticationFailed("no ticket")
        return self.answers.pop(0)

    def wrap(self, message: bytes) -> bytes:
        return b"W" + message

    def unwrap(self, token: bytes) -> bytes:
        if not token.startswith(b"W"):
            raise AuthenticationFailed("not wrapped")
        return token[1:]


def server(*answers: bytes) -> GssapiServer:
    return GssapiServer(Context(*answers), ShortNames(["DEFAULT"], "TEST.EXAMPLE").of)


@pytest.mark.parametrize("authorization_id", [b"", ALICE.encode(), b"kafka@localhost", b"\xff"])
def test_an_exchange_whose_context_has_a_last_answer(authorization_id: bytes) -> None:
    made = server(b"challenge", b"last")
    assert made.receive(b"ticket") == b"challenge"
    assert made.receive(b"proof") == b"last"
    assert made.receive(b"") == b"W" + OFFER
    assert not made.is_complete
    assert made.receive(b"W\x01\0\0\0" + authorization_id) == b""
    assert (made.is_complete, made.user) == (True, "alice")


def test_an_exchange_whose_context_has_none() -> None:
    made = server(b"")
    assert made.receive(b"ticket") == b"W" + OFFER
    assert made.receive(b"W\x01\0\0\0") == b""
    assert made.is_complete


@pytest.mark.parametrize(
    "tokens",
    [
        [b"wrong"],
        [b"x" * (MAX_TOKEN_BYTES + 1)],
        [b"ticket", b"more"],
        [b"ticket", b"", b"unwrapped"],
        [b"ticket", b"", b"W"],
        [b"ticket", b"", b"W\x02\0\0\0"],
        [b"ticket", b"", b"W\x05\0\0\0"],
        [b"ticket", b"", b"W\x01\0\0\0", b""],
    ],
)
def test_anything_else_fails(tokens: list[bytes]) -> None:
    made = server(b"last")

    def run() -> None:
        for token in tokens:
            made.receive(token)

    with pytest.raises(AuthenticationFailed):
        run()


def test_a_principal_without_a_short_name_is_nobody() -> None:
    made = GssapiServer(Context(b""), ShortNames(["DEFAULT"], "OTHER").of)
    made.receive(b"ticket")
    with pytest.raises(AuthenticationFailed, match="no rule"):
        made.receive(b"W\x01\0\0\0")
    assert not made.is_complete


# As in Kafka's KerberosNameTest.
RULES = [
    r"RULE:[1:$1](App\..*)s/App\.(.*)/$1/g",
    r"RULE:[2:$1](App\..*)s/App\.(.*)/$1/g",
    "RULE:[1:$1](^[a-z]*$)/U",
    "RULE:[2:$1-$0](admin-.*)s/-.*//",
    "DEFAULT",
]


@pytest.mark.parametrize(
    ("principal", "name"),
    [
        ("App.service-name/example.com@REALM.COM", "service-name"),
        ("App.service-name@REALM.COM", "service-name"),
        ("user@OTHER.COM", "USER"),
        ("admin/h@OTHER.COM", "admin"),
        ("Mixed@REALM.COM", "Mixed"),
        ("kafka/h@REALM.COM", "kafka"),
    ],
)
def test_the_first_rule_that_matches_names_a_principal(principal: str, name: str) -> None:
    assert ShortNames(RULES, "REALM.COM").of(principal) == name


@pytest.mark.parametrize(
    ("rules", "principal"),
    [
        (["DEFAULT"], "user@OTHER.COM"),
        (["RULE:[1:$1@$0]"], "user@REALM.COM"),
        (["RULE:[2:$1/$2]"], "user/h@REALM.COM"),
        (["RULE:[1:$1](x.*)s/x(.*)/$7/"], "xuser@REALM.COM"),
        ([], "user@REALM.COM"),
        (["DEFAULT"], "user"),
        (["DEFAULT"], "a/b/c@REALM.COM"),
        (["DEFAULT"], "@REALM.COM"),
        (["DEFAULT"], "x" * 5_000 + "@REALM.COM"),
    ],
)
def test_a_principal_that_no_rule_names(rules: list[str], principal: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        ShortNames(rules, "REALM.COM").of(principal)


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "default",
        "RULE:",
        "RULE:[1]",
        "RULE:[x:$1]",
        "RULE:[1:$2]",
        "RULE:[1:$1](*)",
    ],
)
def test_what_is_no_rule(rule: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        ShortNames([rule], "REALM.COM")


def test_the_parts_of_a_principal() -> None:
    assert parse_kerberos_principal("a/b@C") == (("a", "b"), "C")


# --- the client's side ---


def test_both_sides_understand_each_other() -> None:
    client = GssapiClient(Context(b"ticket", b"proof", b""))
    made = server(b"challenge", b"last")
    token: bytes | None = client.first()
    while token is not None:
        token = client.receive(made.receive(token))
    assert (made.is_complete, made.user) == (True, "alice")


@pytest.mark.parametrize(
    "offer", [b"W\x02\0\0\0", b"W", b"unwrapped", b"x" * (MAX_TOKEN_BYTES + 1)]
)
def test_an_offer_without_the_layer_of_none_is_refused(offer: bytes) -> None:
    client = GssapiClient(Context(b"ticket", b""))
    client.first()
    assert client.receive(b"last") == b""
    with pytest.raises(AuthenticationFailed):
        client.receive(offer)
