"""SCRAM: the exchange of RFC 7677, an independent client, and everything a liar may send."""

import contextlib
import hashlib
import hmac
from base64 import b64decode, b64encode
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.security.scram import MAX_MESSAGE_BYTES, AnswerAboutUnknown, ScramServer
from broker.security.unknown_users import shape_of, stand_in
from common.credentials.errors import AuthenticationFailed
from common.credentials.scram import (
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    ScramCredential,
    ScramMechanism,
    credential_from,
    salted_password,
)

SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"


def credential(
    password: str = "pencil", mechanism: ScramMechanism = SCRAM_SHA_256
) -> ScramCredential:
    return credential_from(mechanism, salted_password(mechanism, password, SALT, 4096), SALT, 4096)


def stand_in_of(
    mechanism: ScramMechanism, *known: ScramCredential, secret: bytes = b"secret"
) -> AnswerAboutUnknown:
    shapes = Counter(map(shape_of, known))
    return lambda user, is_token: stand_in(secret, shapes, mechanism.name, user)


def server(mechanism: ScramMechanism = SCRAM_SHA_256, user: str = "user") -> ScramServer:
    known = {user: credential(mechanism=mechanism)}
    return ScramServer(mechanism, known.get, NONCE, stand_in_of(mechanism))


def test_the_exchange_of_rfc_7677() -> None:
    exchange = server()
    first = exchange.receive(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert first == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    final = exchange.receive(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert final == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert (exchange.is_complete, exchange.user) == (True, "user")


def final_message(
    first_bare: str,
    server_first: bytes,
    password: str,
    mechanism: ScramMechanism,
    header: bytes = b"n,,",
    before_nonce: str = "",
) -> bytes:
    """Make a client's last message by RFC 5802's formulas."""
    fields = dict(part.split("=", 1) for part in server_first.decode().split(","))
    without_proof = f"c={b64encode(header).decode()},r={before_nonce}{fields['r']}"
    name = mechanism.hash_name
    salted = hashlib.pbkdf2_hmac(name, password.encode(), b64decode(fields["s"]), int(fields["i"]))
    client_key = hmac.digest(salted, b"Client Key", name)
    signed = f"{first_bare},{server_first.decode()},{without_proof}".encode()
    signature = hmac.digest(hashlib.new(name, client_key).digest(), signed, name)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    return f"{without_proof},p={b64encode(proof).decode()}".encode()


@pytest.mark.parametrize("mechanism", [SCRAM_SHA_256, SCRAM_SHA_512])
@pytest.mark.parametrize("header", [b"n,,", b"y,,", b"n,a=user,"])
def test_the_right_password_is_accepted_and_another_one_is_not(
    mechanism: ScramMechanism, header: bytes
) -> None:
    for password, is_right in (("pencil", True), ("pencils", False), ("", False)):
        exchange = server(mechanism)
        answer = exchange.receive(header + b"n=user,r=abc")
        final = final_message("n=user,r=abc", answer, password, mechanism, header)
        if is_right:
            exchange.receive(final)
        else:
            with pytest.raises(AuthenticationFailed, match="the user or the password"):
                exchange.receive(final)
        assert exchange.is_complete is is_right


@pytest.mark.parametrize(("before", "is_right"), [("abc", True), ("abd", False), ("abcabc", False)])
def test_librdkafka_before_2_6_1_says_its_own_nonce_twice(before: str, is_right: bool) -> None:
    exchange = server()
    answer = exchange.receive(b"n,,n=user,r=abc")
    bare = "n=user,r=abc"
    final = final_message(bare, answer, "pencil", SCRAM_SHA_256, before_nonce=before)
    with contextlib.nullcontext() if is_right else pytest.raises(AuthenticationFailed):
        exchange.receive(final)
    assert exchange.is_complete is is_right


def test_a_user_with_a_comma_and_an_equals_sign() -> None:
    exchange = server(user="a,b=c")
    answer = exchange.receive(b"n,,n=a=2Cb=3Dc,r=abc")
    exchange.receive(final_message("n=a=2Cb=3Dc,r=abc", answer, "pencil", SCRAM_SHA_256))
    assert exchange.user == "a,b=c"


def with_salt(salt: bytes, iterations: int = 8192) -> ScramCredential:
    return credential()._replace(salt=salt, iterations=iterations)


KAFKAS_SALT = b"1f8k3mq0zj2x7c5v9b4n6l0w2e"


@pytest.mark.parametrize("known", [with_salt(bytes(range(20))), with_salt(KAFKAS_SALT, 4096)])
def test_an_unknown_user_is_answered_in_the_shape_of_known_ones(known: ScramCredential) -> None:
    salts = set()
    for number in range(200):
        answer = stand_in_of(SCRAM_SHA_256, known)(f"nobody-{number}", False)
        salt, iterations = answer
        salts.add(salt)
        assert iterations == known.iterations
        assert shape_of(with_salt(salt, iterations)) == shape_of(known)
    assert len(salts) == 200
    assert stand_in_of(SCRAM_SHA_256, known, secret=b"other")("nobody-0", False)[0] not in salts
    assert stand_in_of(SCRAM_SHA_512, known)("nobody-0", False)[0] not in salts


def test_salts_as_of_kafkas_tools_have_their_lengths() -> None:
    ask = stand_in_of(SCRAM_SHA_256, with_salt(KAFKAS_SALT))
    lengths = Counter(len(ask(f"nobody-{number}", False)[0]) for number in range(1_000))
    assert set(lengths) <= set(range(22, 27))
    assert all(300 < lengths[length] < 700 for length in (25, 26))  # 130 bits are about 25.1 digits


def test_shapes_are_as_frequent_as_among_known_users_and_stay_with_their_user() -> None:
    few, many = with_salt(bytes(range(20)), 16_384), with_salt(bytes(range(20)), 4096)
    names = [f"nobody-{number}" for number in range(2_000)]
    ask = stand_in_of(SCRAM_SHA_256, few, *[many] * 9)
    before = [ask(name, False) for name in names]
    assert 120 < sum(iterations == 16_384 for _, iterations in before) < 280
    with_one_more = stand_in_of(SCRAM_SHA_256, few, *[many] * 10)
    after = [with_one_more(name, False) for name in names]
    changed = sum(was != found for was, found in zip(before, after, strict=True))
    assert changed < 60


def test_an_unknown_user_is_told_the_same_salt_each_time_and_fails_at_the_end() -> None:
    answers = []
    for _ in range(2):
        exchange = server()
        answer = exchange.receive(b"n,,n=nobody,r=abc")
        answers.append(answer)
        with pytest.raises(AuthenticationFailed, match="the user or the password"):
            exchange.receive(final_message("n=nobody,r=abc", answer, "x", SCRAM_SHA_256))
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"p=tls-unique,,n=user,r=abc",
        b"n,a=admin,n=user,r=abc",
        b"n,admin,n=user,r=abc",
        b"n,,m=ext,n=user,r=abc",
        b"n,,r=abc,n=user",
        b"n,,n=user,r=",
        b"n,,n=,r=abc",
        b"n,,n=us=2Der,r=abc",
        b"n,,n=user",
        b"\xff\xfe",
        b"n,,n=user,r=" + b"x" * MAX_MESSAGE_BYTES,
    ],
)
def test_a_wrong_first_message_is_refused(message: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        server().receive(message)


def test_a_final_message_with_another_nonce_binding_or_shape_is_refused() -> None:
    for change in (
        lambda final: final.replace(b",r=abc", b",r=abd"),
        lambda final: final.replace(NONCE.encode(), b""),  # CVE-2024-56128
        lambda final: final.replace(b"c=biws", b"c=eSws"),
        lambda final: final.replace(b"c=biws", b"c=%%%"),
        lambda final: final.replace(b",p=", b",q="),
        lambda final: final[:-8],
        lambda final: final.partition(b",p=")[0] + b",p=",
    ):
        exchange = server()
        answer = exchange.receive(b"n,,n=user,r=abc")
        final = final_message("n=user,r=abc", answer, "pencil", SCRAM_SHA_256)
        with pytest.raises(AuthenticationFailed):
            exchange.receive(change(final))  # type: ignore[no-untyped-call]
        assert not exchange.is_complete


@given(st.lists(st.binary(max_size=80), max_size=3))
def test_random_messages_never_authenticate_and_raise_nothing_else(messages: list[bytes]) -> None:
    exchange = server()
    try:
        for message in messages:
            exchange.receive(message)
    except AuthenticationFailed:
        pass
    assert not exchange.is_complete
