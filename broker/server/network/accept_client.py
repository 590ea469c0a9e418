"""Makes the client connections of one listener: plain, with TLS, with SASL, or with both.

With TLS a connection is made after the handshake, and its principal is that of the client's
certificate. With SASL a connection begins with its authentication (`authentication.py`); until that
is complete, only small frames are accepted.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from functools import partial
from secrets import token_bytes

from broker.config.broker_config import BrokerConfig
from broker.config.security_config import SaslConfig
from broker.metadata.image import MetadataImage
from broker.metadata.parts.scram import SECRET_BYTES
from broker.security.delegation_tokens import TokenCredentials
from broker.security.gssapi_server import GssapiServer
from broker.security.jwt_claims import check_unsecured, claimed_user
from broker.security.oauthbearer import OauthBearerServer, TokenClaims
from broker.security.plain import PlainServer
from broker.security.principal import ANONYMOUS, USER, principal_of_subject
from broker.security.sasl_session import MechanismServer, SaslSession
from broker.security.scram import ScramServer, TokenLogin
from broker.server.clock import Clock, random_uuid
from broker.server.login.certificate_names import subject_text
from broker.server.login.issuer_keys import IssuerKeys
from broker.server.login.kerberos import KerberosAcceptor
from broker.server.login.tls_contexts import TlsContexts
from broker.server.login.tls_socket import Shaken, TlsHandshake, TlsSocket
from broker.server.network.authentication import AuthenticatingSink, SessionLimits
from broker.server.network.connection import Connection, FrameSink, Peer
from broker.server.network.dispatch import Handler
from broker.server.network.turns import Shared
from common.credentials.mechanisms import GSSAPI, OAUTHBEARER
from common.credentials.scram import SCRAM_MECHANISMS, ScramMechanism

log = logging.getLogger("millstream.listener")

_SCRAM_BY_NAME = {mechanism.name: mechanism for mechanism in SCRAM_MECHANISMS.values()}


class ClientAcceptor:
    """Makes the connections of one listener."""

    def __init__(
        self,
        config: BrokerConfig,
        listener_name: str,
        shared: Shared,
        sink: FrameSink,
        image: Callable[[], MetadataImage],
        tls: TlsContexts | None,
        clock: Clock,
    ) -> None:
        """Read the keytab of Kerberos; raises KafkaError(INVALID_CONFIG)."""
        self._config = config
        self.listener_name = listener_name
        self._security = config.security.listeners[listener_name]
        self._shared = shared
        self._loop: asyncio.AbstractEventLoop = shared.turns.loop
        self._sink = sink
        self._image = image
        self._clock = clock
        secret_key = config.security.tokens.secret_key
        self._token_credentials = TokenCredentials(secret_key) if secret_key else None
        self._spare_secret = token_bytes(SECRET_BYTES)
        sasl = self._security.sasl
        self._issuer_keys: IssuerKeys | None = None
        self._kerberos: KerberosAcceptor | None = None
        if sasl is not None and sasl.kerberos is not None:
            self._kerberos = KerberosAcceptor(sasl.kerberos)
        if sasl is not None and sasl.oauth is not None and sasl.oauth.url:
            self._issuer_keys = IssuerKeys(self._loop, sasl.oauth, self._clock)
            self._issuer_keys.start()
        self._tls = tls
        self.around_login: Callable[[Handler], Handler] = lambda handler: handler
        """Puts something before the handler of the logins that begin from here on."""

    @property
    def has_handshake(self) -> bool:
        """True if `shake_hands` has to be called before `connect`."""
        return self._tls is not None

    def shake_hands(
        self, accepted: socket.socket, on_done: Callable[[Shaken], None]
    ) -> TlsHandshake:
        """Begin the TLS handshake of an accepted socket; raises OSError if it is closed already."""
        assert self._tls is not None, self.listener_name
        wrapped = self._tls.current().wrap_socket(
            accepted, server_side=True, do_handshake_on_connect=False
        )
        return TlsHandshake(self._loop, wrapped, on_done)

    def connect(self, connected: socket.socket | TlsSocket, host: str) -> Connection:
        """Make the connection of a client; raises ValueError if it may not have one."""
        principal = self._certified(connected)
        sasl = self._security.sasl
        sink = self._sink if sasl is None else self._authenticating(sasl)
        limit = self._config.max_frame_bytes
        return Connection(
            self._shared,
            connected,
            sink=sink,
            max_frame_bytes=limit if sasl is None else min(limit, sasl.max_receive_bytes),
            peer=Peer(host, self.listener_name, principal),
        )

    def _certified(self, connected: socket.socket | TlsSocket) -> str:
        """Return the principal that a certificate proves; that of SASL is set later."""
        tls = self._security.tls
        if not isinstance(connected, TlsSocket) or tls is None or self._security.sasl is not None:
            return ANONYMOUS
        certificate = connected.peer_certificate()
        if certificate is None:
            return ANONYMOUS
        return principal_of_subject(subject_text(certificate), list(tls.mapping_rules))

    def _authenticating(self, sasl: SaslConfig) -> AuthenticatingSink:
        def make_server(name: str) -> MechanismServer:
            if name == OAUTHBEARER:
                return OauthBearerServer(self._validate_token, claimed_user)
            if name == GSSAPI:
                return self._gssapi_server()
            mechanism = _SCRAM_BY_NAME.get(name)
            if mechanism is None:
                return PlainServer(sasl.logins[name].passwords)
            number = mechanism.number
            return ScramServer(
                mechanism,
                lambda user: self._image().scram.get((user, number)),
                random_uuid().hex,
                partial(self._about_unknown, mechanism),
                partial(self._find_token, mechanism),
            )

        limits = SessionLimits(
            self._config.max_frame_bytes,
            sasl.failure_delay_ms,
            self._config.security.max_session_ms,
        )
        session = SaslSession(sasl.mechanisms, make_server)
        return AuthenticatingSink(
            self._loop, session, self._sink, limits, self._clock, self.around_login
        )

    def _gssapi_server(self) -> GssapiServer:
        sasl = self._security.sasl
        assert sasl is not None, self.listener_name
        assert sasl.kerberos is not None, self.listener_name
        assert self._kerberos is not None, self.listener_name
        return GssapiServer(self._kerberos.new_context(), sasl.kerberos.names.of)

    def _validate_token(self, token: str) -> TokenClaims:
        """Return the content of an OAuth token; raises InvalidToken."""
        sasl = self._security.sasl
        assert sasl is not None, self.listener_name
        assert sasl.oauth is not None, self.listener_name
        if self._issuer_keys is not None:
            return self._issuer_keys.validate(token)
        return check_unsecured(token, sasl.oauth.rules, self._clock.timestamp_ms())

    def _about_unknown(
        self, mechanism: ScramMechanism, user: str, is_token: bool
    ) -> tuple[bytes, int]:
        """Return a salt and iterations as a known user, or token, of that name could have."""
        if is_token and self._token_credentials is not None:
            return self._token_credentials.answer_about(user)
        return self._image().scram.answer_about_unknown(mechanism, user, self._spare_secret)

    def _find_token(self, mechanism: ScramMechanism, token_id: str) -> TokenLogin | None:
        """Return the login of a delegation token that is known and has not expired."""
        token = self._image().delegation_tokens.get(token_id)
        credentials = self._token_credentials
        if token is None or credentials is None or token.is_expired(self._clock.timestamp_ms()):
            return None
        kind, _, owner = token.owner.partition(":")
        if kind != USER:
            return None
        ends_ms = min(token.max_timestamp_ms, token.expiry_timestamp_ms)
        return TokenLogin(credentials.of(mechanism, token_id), owner, ends_ms)
