"""OAUTHBEARER of one listener: where the issuer's keys are, and which claims a token needs.

Kafka accepts unsecured tokens (`alg=none`) unless a listener names another handler. Here a listener
accepts them only if it names the handler of unsecured tokens; without a handler it takes the keys
of `sasl.oauthbearer.jwks.endpoint.url`, which has to be given then.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from broker.config.sources import invalid
from broker.config.stores import Store
from broker.config.values import Values
from broker.security.jwt_claims import ClaimRules

HANDLER = "sasl.server.callback.handler.class"
URL = "sasl.oauthbearer.jwks.endpoint.url"
ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
_PACKAGE = "org.apache.kafka.common.security.oauthbearer"
SECURED_HANDLERS = frozenset(
    {
        f"{_PACKAGE}.OAuthBearerValidatorCallbackHandler",
        f"{_PACKAGE}.secured.OAuthBearerValidatorCallbackHandler",
    }
)
UNSECURED_HANDLER = f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
VALIDATORS = frozenset({f"{_PACKAGE}.DefaultJwtValidator", f"{_PACKAGE}.BrokerJwtValidator"})
SCHEMES = frozenset({"file", "http", "https"})
LOGIN_HANDLER = "sasl.login.callback.handler.class"
LOGIN_HANDLERS = frozenset(
    {
        f"{_PACKAGE}.OAuthBearerLoginCallbackHandler",
        f"{_PACKAGE}.secured.OAuthBearerLoginCallbackHandler",
    }
)
TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"
_CREDENTIALS = "sasl.oauthbearer.client.credentials.client"


@dataclass(frozen=True, slots=True)
class OauthConfig:
    """How tokens are checked. `url` is empty for unsecured tokens."""

    url: str = ""
    refresh_ms: int = 3_600_000
    retry_ms: int = 100
    retry_max_ms: int = 10_000
    rules: ClaimRules = field(default_factory=ClaimRules)
    truststore: Store | None = None
    """The authorities of the issuer's certificate; None: those of the machine."""


def read_oauth_config(
    values: Values, listener: str, options: Mapping[str, str], truststore: Store | None
) -> OauthConfig:
    """Read the settings of a listener; `options` are those of its JAAS line.

    Raises KafkaError(INVALID_CONFIG).
    """
    handler = values.text(HANDLER)
    if handler == UNSECURED_HANDLER:
        return OauthConfig(rules=_unsecured_rules(options))
    setting = f"listener.name.{listener.lower()}.oauthbearer.{HANDLER}"
    if handler and handler not in SECURED_HANDLERS:
        raise invalid(f"{setting}={handler}: there are {', '.join(sorted(SECURED_HANDLERS))}")
    validator = values.text("sasl.oauthbearer.jwt.validator.class")
    if validator and validator not in VALIDATORS:
        raise invalid(f"sasl.oauthbearer.jwt.validator.class={validator}: no such class here")
    return OauthConfig(
        url=_allowed_url(values, listener, setting),
        refresh_ms=values.integer("sasl.oauthbearer.jwks.endpoint.refresh.ms", 1_000),
        retry_ms=values.integer("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", 1),
        retry_max_ms=values.integer("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", 1),
        rules=ClaimRules(
            user_claim=values.text("sasl.oauthbearer.sub.claim.name"),
            scope_claim=values.text("sasl.oauthbearer.scope.claim.name"),
            audiences=tuple(values.items("sasl.oauthbearer.expected.audience")),
            issuer=values.text("sasl.oauthbearer.expected.issuer"),
            skew_seconds=values.integer("sasl.oauthbearer.clock.skew.seconds", 0),
        ),
        truststore=truststore,
    )


def _allowed_url(values: Values, listener: str, setting: str) -> str:
    url = values.text(URL)
    if not url:
        raise invalid(
            f"OAUTHBEARER on listener {listener} needs {URL}. To accept unsecured tokens, which "
            f"anybody can write, set {setting}={UNSECURED_HANDLER}"
        )
    try:
        scheme = urlsplit(url).scheme
    except ValueError as error:
        raise invalid(f"{URL}={url}: {error}") from error
    if scheme not in SCHEMES:
        raise invalid(f"{URL}={url}: must begin with https://, http:// or file://")
    if url not in values.items(ALLOWED_URLS):
        raise invalid(f"{URL}={url}: must be one of those in {ALLOWED_URLS}")
    try:
        import jwt  # noqa: F401 - an extra
    except ImportError as error:
        raise invalid("OAUTHBEARER needs: pip install 'millrace[security]'") from error
    return url


@dataclass(frozen=True, slots=True)
class OauthClientConfig:
    """Where a client gets its token: a file, or an issuer that knows the client (RFC 6749, 4.4)."""

    url: str
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    truststore: Store | None = None
    """The authorities of the issuer's certificate; None: those of the machine."""


def read_oauth_client_config(
    values: Values, options: Mapping[str, str], truststore: Store | None, *, is_node: bool
) -> OauthClientConfig:
    """Read how a tool or a node gets its token. Raises KafkaError(INVALID_CONFIG).

    A node serves others while it authenticates, so it waits for no issuer: it reads a file.
    """
    handler = values.text(LOGIN_HANDLER)
    if handler and handler not in LOGIN_HANDLERS:
        raise invalid(f"{LOGIN_HANDLER}={handler}: there are {', '.join(sorted(LOGIN_HANDLERS))}")
    for setting in ("sasl.oauthbearer.jwt.retriever.class", "sasl.oauthbearer.assertion.file"):
        if values.text(setting):
            raise invalid(f"{setting} is not built: {TOKEN_URL} decides where a token comes from")
    url = values.text(TOKEN_URL)
    schemes = {"file"} if is_node else SCHEMES
    try:
        scheme = urlsplit(url).scheme
    except ValueError as error:
        raise invalid(f"{TOKEN_URL}={url}: {error}") from error
    if scheme not in schemes:
        who = "a node" if is_node else "a tool"
        given = " or ".join(f"{each}://" for each in sorted(schemes))
        raise invalid(f"{TOKEN_URL}={url}: for OAUTHBEARER {who} needs {given}")
    if is_node and url not in values.items(ALLOWED_URLS):
        raise invalid(f"{TOKEN_URL}={url}: must be one of those in {ALLOWED_URLS}")
    client_id = options.get("clientId") or values.text(f"{_CREDENTIALS}.id")
    secret = options.get("clientSecret") or values.text(f"{_CREDENTIALS}.secret")
    if scheme != "file" and not (client_id and secret):
        raise invalid(f"{TOKEN_URL}={url} needs clientId and clientSecret in sasl.jaas.config")
    scope = options.get("scope") or values.text("sasl.oauthbearer.scope")
    return OauthClientConfig(url, client_id, secret, scope, truststore)


def _unsecured_rules(options: Mapping[str, str]) -> ClaimRules:
    name = "unsecuredValidatorAllowableClockSkewMs"
    try:
        skew_ms = int(options.get(name, "0"))
    except ValueError:
        raise invalid(f"{name}={options[name]}: not a whole number") from None
    if skew_ms < 0:
        raise invalid(f"{name}={skew_ms}: must not be negative")
    return ClaimRules(
        user_claim=options.get("unsecuredValidatorPrincipalClaimName", "sub"),
        scope_claim=options.get("unsecuredValidatorScopeClaimName", "scope"),
        required_scopes=frozenset(options.get("unsecuredValidatorRequiredScope", "").split()),
        skew_seconds=-(-skew_ms // 1_000),
        needs_issue_time=False,
        checks_audience=False,
    )
