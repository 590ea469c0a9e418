"""What each listener demands of a connection, and what authorisation demands of a request.

A listener's own settings stand behind `listener.name.NAME.` and beat the general ones (KIP-103);
those of one SASL mechanism stand behind `listener.name.NAME.MECHANISM.` (KIP-103, KIP-255). Nothing
here reads a key or a certificate: `server/login/tls_contexts.py` does, again whenever a file
changes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from broker.config.kerberos_config import KerberosConfig, read_kerberos_config
from broker.config.oauth_config import OauthConfig, read_oauth_client_config, read_oauth_config
from broker.config.sources import invalid
from broker.config.values import Values
from broker.metadata.control.view import TokenConfig
from broker.security.principal import MappingRule, parse_mapping_rules, parse_super_users
from common.credentials.jaas import Login, LoginSettingsError, parse_jaas
from common.credentials.kerberos import KerberosLogin, library, read_kerberos_login
from common.credentials.mechanisms import GSSAPI, MECHANISMS, MODULES, OAUTHBEARER, other_module
from common.credentials.stores import Store
from common.credentials.tokens import TokenSource
from common.kafka.errors import KafkaError

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
PLAIN = "PLAIN"
CLIENT_MECHANISM = "sasl.mechanism"
TLS_PROTOCOLS = ("TLSv1.2", "TLSv1.3")
CLIENT_AUTH = ("none", "requested", "required")


class SecurityProtocol(Enum):
    """Whether a listener's bytes are encrypted, and whether its clients authenticate by SASL."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def number(self) -> int:
        """The number of this protocol in a broker's registration."""
        return tuple(SecurityProtocol).index(self)

    @property
    def uses_tls(self) -> bool:
        """Whether bytes are encrypted."""
        return self in {SecurityProtocol.SSL, SecurityProtocol.SASL_SSL}

    @property
    def uses_sasl(self) -> bool:
        """Whether clients authenticate by SASL."""
        return self in {SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL}


class AllowedChanges(NamedTuple):
    """How a certificate that is exchanged at run time may differ from the one before it."""

    subject: bool = False
    """ssl.allow.dn.changes"""
    names: bool = False
    """ssl.allow.san.changes: whether names may be missing; more names are always allowed."""


NO_CHANGES = AllowedChanges()


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """What one listener's TLS is made of."""

    keystore: Store
    truststore: Store | None
    key_password: str
    client_auth: str
    protocols: tuple[str, ...]
    ciphers: tuple[str, ...]
    mapping_rules: tuple[MappingRule, ...]
    allowed_changes: AllowedChanges


@dataclass(frozen=True, slots=True)
class SaslConfig:
    """How clients of one listener authenticate."""

    logins: Mapping[str, Login]
    """By the enabled mechanism; the options of SCRAM say nothing about clients."""
    max_receive_bytes: int
    failure_delay_ms: int
    oauth: OauthConfig | None = None
    kerberos: KerberosConfig | None = None

    @property
    def mechanisms(self) -> list[str]:
        """The enabled mechanisms, in the order of the setting."""
        return list(self.logins)


@dataclass(frozen=True, slots=True)
class ListenerSecurity:
    """The security of one listener."""

    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    tls: TlsConfig | None = None
    sasl: SaslConfig | None = None


@dataclass(frozen=True, slots=True)
class ClientSecurity:
    """How a node of this cluster connects to one listener of another."""

    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    keystore: Store | None = None
    """Shown to a server that asks for a certificate."""
    truststore: Store | None = None
    """The authorities that are trusted; None: those of the machine."""
    key_password: str = ""
    tls_protocols: tuple[str, ...] = TLS_PROTOCOLS
    ciphers: tuple[str, ...] = ()
    verifies_host: bool = True
    """Whether a server's certificate must name its host (ssl.endpoint.identification.algorithm)."""
    allowed_changes: AllowedChanges = NO_CHANGES
    mechanism: str = ""
    user: str = ""
    password: str = ""
    is_token: bool = False
    """Whether user and password are the id and the secret of a delegation token."""
    oauth: TokenSource | None = None
    """Where the token of OAUTHBEARER comes from; there is no user and no password then."""
    kerberos: KerberosLogin | None = None
    """The identity of a client of GSSAPI; there is no user and no password then."""

    @property
    def asks_others(self) -> bool:
        """True if a login may wait for another server: an issuer of tokens, or the KDC."""
        asks_issuer = self.oauth is not None and not self.oauth.url.startswith("file:")
        return asks_issuer or self.kerberos is not None


@dataclass(frozen=True, slots=True)
class AuthorizerConfig:
    """The settings of the authorizer."""

    super_users: frozenset[str] = frozenset()
    allow_everyone_if_no_acl_found: bool = False


@dataclass(frozen=True, slots=True)
class SecurityConfig:
    """The security of a node."""

    listeners: Mapping[str, ListenerSecurity] = field(default_factory=dict)
    inter_broker: str = ""
    """The listener that this node connects to on other brokers; empty if there is none."""
    controller: str = ""
    """The listener that this node connects to on controllers; empty if there is none."""
    to_brokers: ClientSecurity = field(default_factory=ClientSecurity)
    to_controllers: ClientSecurity = field(default_factory=ClientSecurity)
    max_session_ms: int = 0
    """How long a SASL session lasts before it must authenticate again; 0: for ever."""
    authorizer: AuthorizerConfig | None = None
    """None: every request is allowed."""
    tokens: TokenConfig = field(default_factory=TokenConfig)

    def protocol_of(self, listener: str) -> SecurityProtocol:
        """Return what a listener of this node speaks."""
        return self.listeners[listener].protocol


def read_security_config(
    values: Values,
    listeners: Iterable[str],
    *,
    inter_broker: str = "",
    controller: str = "",
) -> SecurityConfig:
    """Read the security of every listener; raises KafkaError(INVALID_CONFIG).

    `inter_broker` and `controller` name the listeners that this node connects to on others; none
    where it has no peers.
    """
    protocols = _protocol_map(values)
    found: dict[str, ListenerSecurity] = {}
    for listener in listeners:
        protocol = protocols.get(listener)
        if protocol is None:
            raise invalid(f"listeners: no security protocol is defined for listener {listener}")
        own = values.of_listener(listener)
        found[listener] = ListenerSecurity(
            protocol,
            _tls_config(own, listener) if protocol.uses_tls else None,
            _sasl_config(own, listener) if protocol.uses_sasl else None,
        )
    between = "sasl.mechanism.inter.broker.protocol"
    return SecurityConfig(
        listeners=found,
        inter_broker=inter_broker,
        controller=controller,
        to_brokers=_client_security(values, protocols, inter_broker, between),
        to_controllers=_client_security(
            values, protocols, controller, "sasl.mechanism.controller.protocol"
        ),
        max_session_ms=values.integer("connections.max.reauth.ms", 0),
        authorizer=_authorizer_config(values),
        tokens=TokenConfig(
            secret_key=values.text("delegation.token.secret.key"),
            max_lifetime_ms=values.integer("delegation.token.max.lifetime.ms", 1),
            renewal_ms=values.integer("delegation.token.expiry.time.ms", 1),
            check_interval_ms=values.integer("delegation.token.expiry.check.interval.ms", 1),
        ),
    )


def _client_security(
    values: Values, protocols: Mapping[str, SecurityProtocol], listener: str, setting: str
) -> ClientSecurity:
    if not listener:
        return ClientSecurity()
    protocol = protocols.get(listener)
    if protocol is None:
        raise invalid(f"listeners: no security protocol is defined for listener {listener}")
    own = values.of_listener(listener)
    if not protocol.uses_sasl:
        return _client(own, listener, protocol, "", Login("", {}))
    mechanism = _client_mechanism(setting, own.text(setting))
    try:
        login = _login(own, listener, mechanism)
    except KafkaError as error:
        raise invalid(f"{setting}={mechanism}: {error.message}") from error
    client = _client(own, listener, protocol, mechanism, login)
    jaas = f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config"
    return _with_proof(client, own.of_mechanism(mechanism), jaas, login, setting)


def _with_proof(
    client: ClientSecurity, values: Values, jaas: str, login: Login, chosen_by: str
) -> ClientSecurity:
    """Add what a mechanism needs besides user and password; a setting has chosen it."""
    match client.mechanism:
        case "OAUTHBEARER":
            trusted = _store(values, "truststore", jaas)
            is_node = chosen_by != CLIENT_MECHANISM
            source = read_oauth_client_config(values, login.options, trusted, is_node=is_node)
            return replace(client, oauth=source)
        case "GSSAPI":
            try:
                library()
                kerberos = read_kerberos_login(values.text_or_none, login.options)
            except LoginSettingsError as error:
                raise invalid(f"{chosen_by}=GSSAPI: {error}") from error
            return replace(client, kerberos=kerberos)
        case _:
            pass
    if not login.options.get("username") or not login.options.get("password"):
        raise invalid(f"{jaas} needs username and password, to authenticate with")
    return client


def read_client_security(properties: Mapping[str, str]) -> ClientSecurity:
    """Read the security of a client's file (`--command-config`); raises KafkaError."""
    name = properties.get("security.protocol", "PLAINTEXT").upper()
    try:
        protocol = SecurityProtocol(name)
    except ValueError:
        raise invalid(f"security.protocol={name}: no security protocol") from None
    values, who = Values(properties), "of this tool"
    if not protocol.uses_sasl:
        return _client(values, who, protocol, "", Login("", {}))
    mechanism = _client_mechanism(CLIENT_MECHANISM, properties.get(CLIENT_MECHANISM, GSSAPI))
    try:
        login = parse_jaas(properties.get("sasl.jaas.config", ""))
    except ValueError as error:
        raise invalid(f"sasl.jaas.config: {error}") from error
    _check_module("sasl.jaas.config", mechanism, login)
    client = _client(values, who, protocol, mechanism, login)
    return _with_proof(client, values, "sasl.jaas.config", login, CLIENT_MECHANISM)


def _client_mechanism(setting: str, name: str) -> str:
    if name.upper() not in MECHANISMS:
        raise invalid(f"{setting}={name}: there are {', '.join(MECHANISMS)}")
    return name.upper()


def _client(
    values: Values, listener: str, protocol: SecurityProtocol, mechanism: str, login: Login
) -> ClientSecurity:
    user, password = login.options.get("username", ""), login.options.get("password", "")
    is_token = login.options.get("tokenauth", "").lower() == "true"
    if not protocol.uses_tls:
        return ClientSecurity(
            protocol, mechanism=mechanism, user=user, password=password, is_token=is_token
        )
    return ClientSecurity(
        protocol,
        keystore=_store(values, "keystore", listener),
        truststore=_store(values, "truststore", listener),
        key_password=values.text("ssl.key.password"),
        tls_protocols=_tls_protocols(values),
        ciphers=tuple(values.items("ssl.cipher.suites")),
        verifies_host=values.text("ssl.endpoint.identification.algorithm") != "",
        allowed_changes=_allowed_changes(values),
        mechanism=mechanism,
        user=user,
        password=password,
        is_token=is_token,
    )


def _protocol_map(values: Values) -> dict[str, SecurityProtocol]:
    # Kafka maps the controller listener by default; a map that was given replaces that.
    protocols = {"CONTROLLER": SecurityProtocol.PLAINTEXT}
    setting = "listener.security.protocol.map"
    for item in values.items(setting):
        name, _, protocol = item.partition(":")
        try:
            protocols[name.strip().upper()] = SecurityProtocol(protocol.strip().upper())
        except ValueError:
            raise invalid(f"{setting}: {item!r} names no security protocol") from None
    return protocols


def _tls_config(values: Values, listener: str) -> TlsConfig:
    keystore = _store(values, "keystore", listener)
    if keystore is None:
        raise invalid(
            f"listener {listener} needs ssl.keystore.location, or ssl.keystore.key and "
            "ssl.keystore.certificate.chain"
        )
    truststore = _store(values, "truststore", listener)
    client_auth = values.text("ssl.client.auth").lower()
    if client_auth not in CLIENT_AUTH:
        raise invalid(f"ssl.client.auth={client_auth}: must be one of {', '.join(CLIENT_AUTH)}")
    if client_auth != "none" and truststore is None:
        raise invalid(
            f"ssl.client.auth={client_auth} needs ssl.truststore.location or "
            "ssl.truststore.certificates: the authorities whose clients are let in"
        )
    return TlsConfig(
        keystore=keystore,
        truststore=truststore,
        key_password=values.text("ssl.key.password"),
        client_auth=client_auth,
        protocols=_tls_protocols(values),
        ciphers=tuple(values.items("ssl.cipher.suites")),
        mapping_rules=_mapping_rules(values),
        allowed_changes=_allowed_changes(values),
    )


def _allowed_changes(values: Values) -> AllowedChanges:
    return AllowedChanges(
        values.boolean("ssl.allow.dn.changes"), values.boolean("ssl.allow.san.changes")
    )


def _store(values: Values, kind: str, listener: str) -> Store | None:
    location = values.text(f"ssl.{kind}.location")
    if kind == "keystore":
        key = values.text("ssl.keystore.key")
        chain = values.text("ssl.keystore.certificate.chain")
        if bool(key) != bool(chain):
            raise invalid(
                f"listener {listener}: ssl.keystore.key and ssl.keystore.certificate.chain "
                "go together"
            )
        pem = f"{key}\n{chain}" if key else ""
    else:
        pem = values.text("ssl.truststore.certificates")
    if not location and not pem:
        return None
    if location and pem:
        raise invalid(f"listener {listener}: the {kind} is either a file or PEM text, not both")
    return Store(f"ssl.{kind}.location", location, pem, values.text(f"ssl.{kind}.password"))


def _tls_protocols(values: Values) -> tuple[str, ...]:
    protocols = tuple(values.items("ssl.enabled.protocols"))
    if not protocols or not set(protocols) <= set(TLS_PROTOCOLS):
        raise invalid(f"ssl.enabled.protocols: there are {', '.join(TLS_PROTOCOLS)}")
    return protocols


def _mapping_rules(values: Values) -> tuple[MappingRule, ...]:
    try:
        return tuple(parse_mapping_rules(values.text("ssl.principal.mapping.rules")))
    except ValueError as error:
        raise invalid(f"ssl.principal.mapping.rules: {error}") from error


def _sasl_config(values: Values, listener: str) -> SaslConfig:
    mechanisms = [name.upper() for name in values.items("sasl.enabled.mechanisms")]
    if not mechanisms:
        raise invalid(f"listener {listener} needs sasl.enabled.mechanisms")
    for mechanism in mechanisms:
        if mechanism not in MODULES:
            raise invalid(f"sasl.enabled.mechanisms: unknown mechanism {mechanism}")
    logins = {mechanism: _login(values, listener, mechanism) for mechanism in mechanisms}
    oauth = None
    if OAUTHBEARER in logins:
        own = values.of_mechanism(OAUTHBEARER)
        options, trusted = logins[OAUTHBEARER].options, _store(own, "truststore", listener)
        oauth = read_oauth_config(own, listener, options, trusted)
    kerberos = None
    if GSSAPI in logins:
        kerberos = read_kerberos_config(
            values.of_mechanism(GSSAPI), listener, logins[GSSAPI].options
        )
    return SaslConfig(
        logins=logins,
        oauth=oauth,
        kerberos=kerberos,
        max_receive_bytes=values.integer("sasl.server.max.receive.size", 1),
        failure_delay_ms=values.integer("connection.failed.authentication.delay.ms", 0),
    )


def _login(values: Values, listener: str, mechanism: str) -> Login:
    name = f"{mechanism.lower()}.sasl.jaas.config"
    text = values.given.get(name) or values.text("sasl.jaas.config")
    setting = f"listener.name.{listener.lower()}.{name}"
    if not text:
        if mechanism == PLAIN:
            raise invalid(f'PLAIN on listener {listener} needs {setting} with user_NAME="..."')
        return Login(MODULES[mechanism], {})
    try:
        login = parse_jaas(text)
    except ValueError as error:
        raise invalid(f"{setting}: {error}") from error
    _check_module(setting, mechanism, login)
    return login


def _check_module(setting: str, mechanism: str, login: Login) -> None:
    if login.module != MODULES[mechanism]:
        raise invalid(f"{setting}: {other_module(mechanism)}")


def _authorizer_config(values: Values) -> AuthorizerConfig | None:
    name = values.text("authorizer.class.name")
    given = values.given
    if not name:
        for setting in ("super.users", "allow.everyone.if.no.acl.found"):
            if setting in given:
                raise invalid(f"{setting} needs authorizer.class.name={STANDARD_AUTHORIZER}")
        return None
    if name != STANDARD_AUTHORIZER:
        raise invalid(f"authorizer.class.name={name}: there is {STANDARD_AUTHORIZER}")
    try:
        super_users = parse_super_users(given.get("super.users", ""))
    except ValueError as error:
        raise invalid(f"super.users: {error}") from error
    is_open = given.get("allow.everyone.if.no.acl.found", "false").strip().lower()
    if is_open not in {"true", "false"}:
        raise invalid(f"allow.everyone.if.no.acl.found={is_open}: must be true or false")
    return AuthorizerConfig(super_users, is_open == "true")
