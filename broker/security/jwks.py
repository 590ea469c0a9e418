"""The public keys of an issuer (RFC 7517), and the signatures of its tokens.

A key is used with the algorithms of its own type only, so that nobody can sign with a public key as
if it were a shared secret. The library PyJWT checks the signatures; it is imported when needed.
"""

from typing import Any, NamedTuple

from broker.security.jwt_claims import (
    ClaimRules,
    check_claims,
    json_object,
    split_token,
)
from broker.security.oauthbearer import InvalidToken, TokenClaims

MAX_KEYS = 1_000
ALGORITHMS = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""By the type of a key. Shared secrets (`oct`) are left out: an endpoint's keys are public."""


class UnknownKey(InvalidToken):
    """No known key has the id in the token: the issuer may have new ones."""


class Key(NamedTuple):
    """One key as the issuer describes it."""

    key_id: str | None
    kind: str
    algorithm: str | None
    described: dict[str, Any]


class KeySet:
    """The keys of an issuer at one time."""

    def __init__(self, keys: list[Key]) -> None:
        self._keys = keys
        self._made: dict[tuple[int, str], Any] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, key_id: object, algorithm: str) -> Key:
        """Return the key for a token's header; raises InvalidToken, UnknownKey."""
        fitting = [
            key
            for key in self._keys
            if algorithm in ALGORITHMS[key.kind] and key.algorithm in {None, algorithm}
        ]
        if key_id is not None:
            fitting = [key for key in fitting if key.key_id == key_id]
        if not fitting:
            raise UnknownKey("no key of the issuer has its id and algorithm")
        if key_id is None and len(fitting) > 1:
            raise InvalidToken("it has no key id, and the issuer has several keys")
        return fitting[0]

    def verify(self, token: str, rules: ClaimRules, timestamp_ms: int) -> TokenClaims:
        """Return the content of a token with a valid signature; raises InvalidToken."""
        header, _, _ = split_token(token)
        algorithm = header.get("alg")
        if not isinstance(algorithm, str) or not any(algorithm in a for a in ALGORITHMS.values()):
            raise InvalidToken("its algorithm is not accepted")
        if "crit" in header:
            raise InvalidToken("it demands an extension")
        key = self.find(header.get("kid"), algorithm)
        return check_claims(self._signed(token, key, algorithm), rules, timestamp_ms)

    def _signed(self, token: str, key: Key, algorithm: str) -> bytes:
        """Return the payload of a token whose signature is right; raises InvalidToken."""
        from jwt import InvalidTokenError, PyJWK, PyJWS, PyJWTError

        try:
            made = self._made.get((id(key), algorithm))
            if made is None:
                made = self._made[id(key), algorithm] = PyJWK(key.described, algorithm).key
            jws = PyJWS(algorithms=[algorithm])
            payload: bytes = jws.decode_complete(token, made, algorithms=[algorithm])["payload"]
        except InvalidTokenError as error:
            raise InvalidToken("its signature is wrong") from error
        except (PyJWTError, ValueError, TypeError) as error:
            raise InvalidToken("its key cannot be used") from error
        return payload


def parse_key_set(text: bytes) -> KeySet:
    """Read an issuer's keys; keys for encryption and of unknown types are left out.

    Raises ValueError for anything that is no key set.
    """
    try:
        keys = json_object(text, "keys").get("keys")
    except InvalidToken as error:
        raise ValueError(str(error)) from error
    if not isinstance(keys, list) or len(keys) > MAX_KEYS:
        raise ValueError("no list of keys")
    return KeySet(
        [
            Key(_text(key.get("kid")), key["kty"], _text(key.get("alg")), key)
            for key in keys
            if isinstance(key, dict)
            and key.get("kty") in ALGORITHMS
            and key.get("use") in {None, "sig"}
        ]
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
