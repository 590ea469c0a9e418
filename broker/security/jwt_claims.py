"""The claims of a JWT, checked as Kafka's broker does it (KIP-768): the time is an argument.

Tokens need `exp`, `iat` and a user; `nbf` counts if it is there. If an issuer or audiences are
expected, the token has to name them. A token that names audiences is refused if none is expected:
it is meant for another service.
"""

import json
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from broker.security.oauthbearer import InvalidToken, TokenClaims

MAX_SECONDS = 2**40
"""Later times are no times: the year 36812."""


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """Which claims a token needs."""

    user_claim: str = "sub"
    scope_claim: str = "scope"
    audiences: tuple[str, ...] = ()
    issuer: str = ""
    skew_seconds: int = 30
    required_scopes: frozenset[str] = frozenset()
    needs_issue_time: bool = True
    checks_audience: bool = True
    """False for unsecured tokens: Kafka's validator of those looks at no audience."""


def check_claims(payload: bytes, rules: ClaimRules, timestamp_ms: int) -> TokenClaims:
    """Return the content of a token; raises InvalidToken."""
    claims = json_object(payload, "claims")
    now, skew = timestamp_ms / 1_000, rules.skew_seconds
    expires = _time(claims, "exp", is_required=True)
    assert expires is not None
    issued = _time(claims, "iat", is_required=rules.needs_issue_time)
    begins = _time(claims, "nbf", is_required=False)
    if now - skew >= expires:
        raise InvalidToken("it has expired")
    if begins is not None and now + skew < begins:
        raise InvalidToken("it is not valid yet")
    if issued is not None and issued > expires:
        raise InvalidToken("it was issued after its end")
    if rules.issuer and claims.get("iss") != rules.issuer:
        raise InvalidToken("another issuer")
    if rules.checks_audience:
        _check_audience(claims.get("aud"), rules.audiences)
    user = claims.get(rules.user_claim)
    if not isinstance(user, str) or not user.strip():
        raise InvalidToken(f"no user in the claim {rules.user_claim}")
    scopes = _scopes(claims.get(rules.scope_claim))
    if not rules.required_scopes <= scopes:
        raise InvalidToken("a required scope is missing")
    return TokenClaims(user, int(expires * 1_000), scopes)


def _check_audience(named: object, expected: tuple[str, ...]) -> None:
    audiences = [named] if isinstance(named, str) else named
    if audiences is None and not expected:
        return
    if not isinstance(audiences, list) or not any(each in expected for each in audiences):
        raise InvalidToken("another audience")


def _time(claims: Mapping[str, Any], name: str, *, is_required: bool) -> float | None:
    value = claims.get(name)
    if value is None and not is_required:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_SECONDS:
        return float(value)
    raise InvalidToken(f"no time in the claim {name}")


def _scopes(value: object) -> frozenset[str]:
    if value is None:
        return frozenset()
    scopes = value.split() if isinstance(value, str) else value
    if not isinstance(scopes, list) or not all(isinstance(each, str) for each in scopes):
        raise InvalidToken("the scopes are no names")
    return frozenset(scopes)


def json_object(text: bytes, what: str) -> dict[str, Any]:
    """Return a JSON object; raises InvalidToken for anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidToken(f"the {what} are not JSON") from error
    if not isinstance(value, dict):
        raise InvalidToken(f"the {what} are no object")
    return value


def split_token(token: str) -> tuple[dict[str, Any], bytes, str]:
    """Return header, payload and signature (as text) of a compact JWS; raises InvalidToken."""
    parts = token.split(".")
    if len(parts) != 3:
        raise InvalidToken("it is no signed JWT")
    header, payload = (_decoded(part) for part in parts[:2])
    return json_object(header, "headers"), payload, parts[2]


def _decoded(part: str) -> bytes:
    try:
        return urlsafe_b64decode(part.encode("ascii") + b"=" * (-len(part) % 4))
    except ValueError as error:
        raise InvalidToken("it is no base64") from error


def claimed_user(token: str) -> str:
    """Return the `sub` of a token for the log, without any proof; empty for one that has none."""
    try:
        _, payload, _ = split_token(token)
        user = json_object(payload, "claims").get("sub")
    except InvalidToken:
        return ""
    return user if isinstance(user, str) else ""


def check_unsecured(token: str, rules: ClaimRules, timestamp_ms: int) -> TokenClaims:
    """Return the content of a token without a signature (RFC 7515, appendix A.5)."""
    header, payload, signature = split_token(token)
    if header.get("alg") != "none" or signature:
        raise InvalidToken("it is not unsecured")
    return check_claims(payload, rules, timestamp_ms)
