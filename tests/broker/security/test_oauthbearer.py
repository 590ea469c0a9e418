"""OAUTHBEARER: the messages of RFC 7628, the claims of a token, and everything a liar may send."""

import json
from base64 import urlsafe_b64encode
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from hypothesis import given
from hypothesis import strategies as st
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from broker.security.jwks import KeySet, UnknownKey, parse_key_set
from broker.security.jwt_claims import ClaimRules, check_claims, check_unsecured
from broker.security.oauthbearer import (
    MAX_TOKEN_LENGTH,
    REFUSAL,
    InvalidToken,
    OauthBearerServer,
    TokenClaims,
)
from common.credentials.errors import AuthenticationFailed

NOW_MS = 1_700_000_000_000
NOW = NOW_MS // 1_000
RULES = ClaimRules()
GOOD = {"sub": "alice", "iat": NOW, "exp": NOW + 60}


def claims(**more: Any) -> bytes:
    given = {**GOOD, **more}
    return json.dumps({key: value for key, value in given.items() if value is not None}).encode()


# --- the exchange ---


def only_good(token: str) -> TokenClaims:
    if token != "good":
        raise InvalidToken("it is bad")
    return TokenClaims("alice", 5)


def test_a_valid_token_needs_one_message() -> None:
    server = OauthBearerServer(only_good)
    assert server.receive(b"n,,\x01auth=Bearer good\x01host=h\x01port=1\x01\x01") == b""
    assert (server.is_complete, server.user, server.expires_at_ms) == (True, "alice", 5)
    with pytest.raises(AuthenticationFailed):
        server.receive(b"\x01")


def test_a_bad_token_is_told_before_the_exchange_fails() -> None:
    server = OauthBearerServer(only_good)
    assert server.receive(b"n,,\x01auth=Bearer bad\x01\x01") == REFUSAL
    assert not server.is_complete
    with pytest.raises(AuthenticationFailed, match="it is bad"):
        server.receive(b"n,,\x01auth=Bearer good\x01\x01")


@pytest.mark.parametrize("name", ["alice", ""])
def test_the_authorization_id_is_the_user(name: str) -> None:
    server = OauthBearerServer(only_good)
    header = f"n,a={name}," if name else "n,,"
    assert server.receive(f"{header}\x01auth=bearer good\x01\x01".encode()) == b""


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"good",
        b"n,,\x01\x01",
        b"y,,\x01auth=Bearer good\x01\x01",
        b"p=tls,,\x01auth=Bearer good\x01\x01",
        b"n,a=bob,\x01auth=Bearer good\x01\x01",
        b"n,bob,\x01auth=Bearer good\x01\x01",
        b"n,,\x01auth=Bearer good\x01",
        b"n,,\x01auth=Basic good\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Bearer good\x01auth=Bearer good\x01\x01",
        b"n,,\x01auth=Bearer good\x01key\x01\x01",
        b"n,,\x01auth=Bearer good\x01k1=v\x01\x01",
        b"n,,\x01auth=Bearer g\xc3\xbcd\x01\x01",
        b"n,,\x01auth=Bearer \xff\x01\x01",
        b"n,,\x01auth=Bearer " + b"x" * MAX_TOKEN_LENGTH + b"\x01\x01",
    ],
)
def test_a_malformed_message_fails(message: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        OauthBearerServer(only_good).receive(message)


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(message: bytes) -> None:
    server = OauthBearerServer(only_good)
    try:
        server.receive(message)
    except AuthenticationFailed:
        assert not server.is_complete


# --- the claims ---


def test_the_claims_of_a_token() -> None:
    found = check_claims(claims(scope="read write"), RULES, NOW_MS)
    assert found == TokenClaims("alice", (NOW + 60) * 1_000, frozenset({"read", "write"}))


@pytest.mark.parametrize(
    "more",
    [
        {"exp": NOW - 30},
        {"exp": None},
        {"exp": "soon"},
        {"exp": True},
        {"exp": float("nan")},
        {"exp": float("inf")},
        {"exp": 10**400},
        {"exp": -1},
        {"iat": None},
        {"iat": NOW + 3_600},
        {"nbf": NOW + 31},
        {"sub": None},
        {"sub": ""},
        {"sub": " "},
        {"sub": 7},
        {"aud": "kafka"},
        {"aud": ["kafka"]},
        {"scope": 7},
        {"scope": [7]},
    ],
)
def test_a_token_with_wrong_claims_is_invalid(more: dict[str, Any]) -> None:
    with pytest.raises(InvalidToken):
        check_claims(claims(**more), RULES, NOW_MS)


@pytest.mark.parametrize(
    ("rules", "more", "is_right"),
    [
        (ClaimRules(audiences=("kafka", "k2")), {"aud": "kafka"}, True),
        (ClaimRules(audiences=("kafka", "k2")), {"aud": ["other", "k2"]}, True),
        (ClaimRules(audiences=("kafka",)), {"aud": "other"}, False),
        (ClaimRules(audiences=("kafka",)), {}, False),
        (ClaimRules(audiences=("kafka",)), {"aud": {"kafka": 1}}, False),
        (ClaimRules(issuer="me"), {"iss": "me"}, True),
        (ClaimRules(issuer="me"), {"iss": "you"}, False),
        (ClaimRules(issuer="me"), {}, False),
        (ClaimRules(user_claim="uid"), {"uid": "bob"}, True),
        (ClaimRules(user_claim="uid"), {}, False),
        (ClaimRules(skew_seconds=0), {"exp": NOW}, False),
        (ClaimRules(skew_seconds=5), {"exp": NOW - 4}, True),
        (ClaimRules(scope_claim="scp", required_scopes=frozenset({"w"})), {"scp": ["w"]}, True),
        (ClaimRules(required_scopes=frozenset({"w"})), {"scope": "r"}, False),
    ],
)
def test_the_settings_say_which_claims(
    rules: ClaimRules, more: dict[str, Any], is_right: bool
) -> None:
    if is_right:
        check_claims(claims(**{"iat": 0, **more}), rules, NOW_MS)
    else:
        with pytest.raises(InvalidToken):
            check_claims(claims(**{"iat": 0, **more}), rules, NOW_MS)


@pytest.mark.parametrize("payload", [b"", b"[]", b"{", b"\xff", b"[" * 100_000])
def test_claims_that_are_no_object(payload: bytes) -> None:
    with pytest.raises(InvalidToken):
        check_claims(payload, RULES, NOW_MS)


# --- signatures ---

RSA = rsa.generate_private_key(65537, 2048)
OTHER = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()


def described(key: Any, key_id: str | None, **more: Any) -> dict[str, Any]:
    makers: dict[Any, Any] = {
        RSA: RSAAlgorithm,
        OTHER: RSAAlgorithm,
        EC: ECAlgorithm,
        ED: OKPAlgorithm,
    }
    found = json.loads(makers[key].to_jwk(key.public_key()))
    return {**found, **({} if key_id is None else {"kid": key_id}), **more}


def key_set(*keys: dict[str, Any]) -> KeySet:
    return parse_key_set(json.dumps({"keys": keys}).encode())


ALL = key_set(described(RSA, "r"), described(EC, "e"), described(ED, "d"), described(OTHER, "o"))


def signed(key: Any, algorithm: str, **headers: Any) -> str:
    return jwt.encode(dict(GOOD), key, algorithm=algorithm, headers=headers)


@pytest.mark.parametrize(
    ("key", "algorithm", "key_id"),
    [(RSA, "RS256", "r"), (RSA, "PS512", "r"), (EC, "ES256", "e"), (ED, "EdDSA", "d")],
)
def test_a_signature_of_the_issuer_proves_the_token(key: Any, algorithm: str, key_id: str) -> None:
    assert ALL.verify(signed(key, algorithm, kid=key_id), RULES, NOW_MS).user == "alice"


def test_another_signature_proves_nothing() -> None:
    for token in (
        signed(RSA, "RS256", kid="o"),
        signed(OTHER, "RS256", kid="r"),
        signed(RSA, "RS256", kid="r")[:-3] + "AAA",
        signed(RSA, "RS256", kid="r").rpartition(".")[0] + ".",
        signed(RSA, "RS256"),  # several keys fit
        signed(RSA, "RS256", kid="r", crit=["b64"]),
        jwt.encode(dict(GOOD), None, algorithm="none", headers={"kid": "r"}),
        "a.b.c",
        "a.b",
        "....",
        "é.é.é",
    ):
        with pytest.raises(InvalidToken):
            ALL.verify(token, RULES, NOW_MS)


def test_a_public_key_is_no_shared_secret() -> None:
    public = json.dumps(described(RSA, "r")).encode()
    forged = jwt.encode(dict(GOOD), b"x" * 64 + public, algorithm="HS256", headers={"kid": "r"})
    with pytest.raises(InvalidToken, match="not accepted"):
        ALL.verify(forged, RULES, NOW_MS)


def test_an_unknown_key_is_told_apart() -> None:
    with pytest.raises(UnknownKey):
        ALL.verify(signed(RSA, "RS256", kid="new"), RULES, NOW_MS)
    with pytest.raises(UnknownKey):
        key_set(described(RSA, "r", alg="RS512")).verify(
            signed(RSA, "RS256", kid="r"), RULES, NOW_MS
        )


def test_the_only_key_needs_no_id() -> None:
    only = key_set(described(RSA, None), described(RSA, "enc", use="enc"), {"kty": "oct", "k": "x"})
    assert len(only) == 1
    assert only.verify(signed(RSA, "RS256"), RULES, NOW_MS).user == "alice"


def test_a_key_that_cannot_be_used_proves_nothing() -> None:
    broken = key_set({"kty": "RSA", "kid": "r", "n": "x", "e": 7})
    with pytest.raises(InvalidToken):
        broken.verify(signed(RSA, "RS256", kid="r"), RULES, NOW_MS)


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"keys": 7}', b"[" * 100_000, b"\xff"])
def test_what_is_no_key_set(text: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_key_set(text)


# --- unsecured ---


def unsecured(header: dict[str, Any], signature: str = "") -> str:
    parts = [json.dumps(header).encode(), claims()]
    encoded = [urlsafe_b64encode(part).decode().rstrip("=") for part in parts]
    return f"{'.'.join(encoded)}.{signature}"


def test_unsecured_tokens_are_for_those_who_ask_for_them() -> None:
    assert check_unsecured(unsecured({"alg": "none"}), RULES, NOW_MS).user == "alice"
    for token in (unsecured({"alg": "none"}, "xx"), unsecured({"alg": "RS256"}), unsecured({})):
        with pytest.raises(InvalidToken):
            check_unsecured(token, RULES, NOW_MS)
    with pytest.raises(InvalidToken):
        ALL.verify(unsecured({"alg": "none"}), RULES, NOW_MS)
