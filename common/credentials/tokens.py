"""The token of a client of OAUTHBEARER: from a file, or from an issuer (RFC 6749, section 4.4).

    sasl.oauthbearer.token.endpoint.url=https://issuer.example/token
    sasl.jaas.config=...OAuthBearerLoginModule required clientId="orders" clientSecret="...";

A token is read for each connection, so that a renewed file is used at once. If the setting
`org.apache.kafka.sasl.oauthbearer.allowed.urls` is there, it has to name the URL.
"""

import json
from base64 import b64encode, urlsafe_b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any, Final, NamedTuple
from urllib.parse import quote_plus, urlencode, urlsplit
from urllib.request import Request

from common.credentials.fetching import fetched
from common.credentials.jaas import ALLOWED_URLS, TOKEN_URL, LoginSettingsError
from common.credentials.stores import Store
from common.process.clock import timestamp_ms

SCHEMES: Final = frozenset({"file", "http", "https"})
MAX_TOKEN_LENGTH: Final = 64 * 1024
ASSUMED_SECONDS: Final = 300.0
"""How long a token is used if neither its issuer nor the token itself says when it expires."""
_LOGIN_HANDLER: Final = "sasl.login.callback.handler.class"
_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
_LOGIN_HANDLERS: Final = (
    f"{_PACKAGE}.OAuthBearerLoginCallbackHandler",
    f"{_PACKAGE}.secured.OAuthBearerLoginCallbackHandler",
)
_RETRIEVER: Final = "sasl.oauthbearer.jwt.retriever.class"
_RETRIEVERS: Final = tuple(
    f"{_PACKAGE}.{name}JwtRetriever" for name in ("Default", "ClientCredentials", "File")
)
_ENCODED: Final = "sasl.oauthbearer.header.urlencode"
_SCOPE: Final = "sasl.oauthbearer.scope"
# Kafka's names, then librdkafka's.
_IDS: Final = ("sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.id")
_SECRETS: Final = (
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.client.secret",
)
_METHOD: Final = "sasl.oauthbearer.method"
READ: Final = frozenset(
    {TOKEN_URL, _LOGIN_HANDLER, _RETRIEVER, _ENCODED, _SCOPE, _METHOD, *_IDS, *_SECRETS}
)
"""The settings that say where a token comes from."""


class NoToken(Exception):  # noqa: N818 - what there is then
    """There is no token at this moment; the message names the place, and no secret."""


@dataclass(frozen=True, slots=True)
class TokenSource:
    """Where a client gets its token."""

    url: str
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    is_encoded: bool = False
    """True if the issuer takes id and secret URL-encoded in the header (RFC 6749, 2.3.1)."""
    truststore: Store | None = field(default=None, repr=False)
    """The authorities of the issuer's certificate; None: those of the machine."""


class Token(NamedTuple):
    """A token and when it expires, in seconds since 1970."""

    text: str
    expires_at: float


def read_token_source(
    text: Callable[[str], str], options: Mapping[str, str], truststore: Store | None
) -> TokenSource:
    """Read the settings; `text` returns a setting, `options` are those of the JAAS line.

    Raise LoginSettingsError.
    """
    _refuse_other_ways(text, options)
    url = text(TOKEN_URL)
    try:
        scheme = urlsplit(url).scheme
    except ValueError as error:
        raise LoginSettingsError(f"{TOKEN_URL}={url}: {error}") from error
    if scheme not in SCHEMES:
        raise LoginSettingsError(
            f"{TOKEN_URL}={url}: OAUTHBEARER needs file://, http:// or https://"
        )
    allowed = [each.strip() for each in text(ALLOWED_URLS).split(",") if each.strip()]
    if allowed and url not in allowed:
        raise LoginSettingsError(f"{TOKEN_URL}={url}: must be one of those in {ALLOWED_URLS}")
    client_id = options.get("clientId") or _first(text, _IDS)
    secret = options.get("clientSecret") or _first(text, _SECRETS)
    if scheme != "file" and not (client_id and secret):
        raise LoginSettingsError(
            f"{TOKEN_URL}={url} needs clientId and clientSecret in sasl.jaas.config"
        )
    return TokenSource(
        url,
        client_id,
        secret,
        options.get("scope") or text(_SCOPE),
        text(_ENCODED).strip().lower() == "true",
        truststore,
    )


def _refuse_other_ways(text: Callable[[str], str], options: Mapping[str, str]) -> None:
    for setting, known in ((_LOGIN_HANDLER, _LOGIN_HANDLERS), (_RETRIEVER, _RETRIEVERS)):
        if text(setting) and text(setting) not in known:
            raise LoginSettingsError(f"{setting}={text(setting)}: there are {', '.join(known)}")
    if text("sasl.oauthbearer.assertion.file"):
        raise LoginSettingsError(
            f"sasl.oauthbearer.assertion.file is not built: {TOKEN_URL} says where a token is"
        )
    extensions = sorted(name for name in options if name.startswith("extension_"))
    if extensions:
        raise LoginSettingsError(f"{extensions[0]} in sasl.jaas.config: extensions are not built")


def _first(text: Callable[[str], str], names: tuple[str, ...]) -> str:
    return next((text(name) for name in names if text(name)), "")


def read_token(source: TokenSource, now: float) -> Token:
    """Return a new token; `now` is in seconds since 1970. Raise NoToken. It waits for an issuer."""
    is_file = source.url.startswith("file:")
    try:
        answer = fetched(Request(source.url) if is_file else _request(source), source.truststore)
        said = {"access_token": answer.decode()} if is_file else json.loads(answer)
    except (OSError, ValueError, HTTPException, RecursionError) as error:
        raise NoToken(f"no token from {source.url}: {error}") from error
    token = said.get("access_token") if isinstance(said, dict) else None
    token = token.strip() if isinstance(token, str) else ""
    if not token or not token.isascii() or not token.isprintable() or len(token) > MAX_TOKEN_LENGTH:
        raise NoToken(f"no token from {source.url}: its answer is none")
    return Token(token, _end(said, token, now))


def _request(source: TokenSource) -> Request:
    """Ask in the client's own name (RFC 6749, 4.4)."""
    fields = {"grant_type": "client_credentials"}
    if source.scope:
        fields["scope"] = source.scope
    pair = (source.client_id, source.client_secret)
    login = ":".join(quote_plus(each) if source.is_encoded else each for each in pair)
    headers = {
        "Authorization": f"Basic {b64encode(login.encode()).decode()}",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    return Request(source.url, data=urlencode(fields).encode(), headers=headers, method="POST")


def _end(said: Mapping[str, Any], token: str, now: float) -> float:
    """Return when a token expires: the earlier of what its issuer and what it says itself."""
    lifetime, ends = _number(said.get("expires_in")), _number(_claims(token).get("exp"))
    told = [*([] if lifetime is None else [now + lifetime]), *([] if ends is None else [ends])]
    return min(told, default=now + ASSUMED_SECONDS)


def _claims(token: str) -> dict[str, Any]:
    """Return the claims of a JWT without a check; the broker checks them."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = json.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


def _number(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**40:
        return float(value)
    return None


@dataclass(frozen=True, slots=True)
class TokenReader:
    """Reads the tokens of one client. As a function it is librdkafka's `oauth_cb`."""

    source: TokenSource

    def read(self) -> Token:
        """Return a new token. Raise NoToken. It waits for an issuer."""
        return read_token(self.source, timestamp_ms() / 1000)

    def __call__(self, _: str) -> tuple[str, float]:
        """Return a new token and when it expires, in seconds since 1970. Raise NoToken."""
        token = self.read()
        return token.text, token.expires_at
