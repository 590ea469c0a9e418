"""OAUTHBEARER of one listener: where the issuer's keys are, and which claims a token needs.

Kafka accepts unsecured tokens (`alg=none`) unless a listener names another handler. Here a listener
accepts them only if it names the handler of unsecured tokens; without a handler it takes the keys
of `sasl.oauthbearer.jwks.endpoint.url`, which has to be given then.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from broker.config.sources import invalid
from broker.config.values import Values
from broker.security.jwt_claims import ClaimRules
from common.credentials.jaas import ALLOWED_URLS, TOKEN_URL, LoginSettingsError
from common.credentials.stores import Store
from common.credentials.tokens import SCHEMES, TokenSource, read_token_source

HANDLER = "sasl.server.callback.handler.class"
URL = "sasl.oauthbearer.jwks.endpoint.url"
_PACKAGE = "org.apache.kafka.common.security.oauthbearer"
SECURED_HANDLERS = frozenset(
    {
        f"{_PACKAGE}.OAuthBearerValidatorCallbackHandler",
        f"{_PACKAGE}.secured.OAuthBearerValidatorCallbackHandler",
    }
)
UNSECURED_HANDLER = f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
VALIDATORS = frozenset({f"{_PACKAGE}.DefaultJwtValidator", f"{_PACKAGE}.BrokerJwtValidator"})


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
        raise invalid("OAUTHBEARER needs: pip install 'millstream[security]'") from error
    return url


def read_oauth_client_config(
    values: Values, options: Mapping[str, str], truststore: Store | None, *, is_node: bool
) -> TokenSource:
    """Read how a tool or a node gets its token. Raises KafkaError(INVALID_CONFIG)."""
    try:
        source = read_token_source(values.text_or_none, options, truststore)
    except LoginSettingsError as error:
        raise invalid(str(error)) from error
    if is_node and source.url not in values.items(ALLOWED_URLS):
        raise invalid(f"{TOKEN_URL}={source.url}: must be one of those in {ALLOWED_URLS}")
    return source


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
