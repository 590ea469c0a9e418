"""How a connection to a broker is secured, for clients that speak Kafka's protocol themselves."""

import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from common.credentials.gssapi_client import GssapiClient
from common.credentials.kerberos_context import new_initiator
from common.credentials.mechanisms import GSSAPI, MECHANISMS, OAUTHBEARER, kerberos_login
from common.credentials.sasl_client import Begun, MechanismClient, OauthBearerClient, client_of
from common.credentials.tokens import NoToken, TokenReader
from common.credentials.translation import ClientSettingsError, client_context
from common.process.clock import random_hex

_NONCE_BYTES: Final = 16


class Security(NamedTuple):
    """TLS and the login of SASL; without both the connection is open."""

    tls: ssl.SSLContext | None = None
    mechanism: str = ""
    begin: Callable[[str], Begun] | None = None
    """Begin a login at a host. Raises AuthenticationFailed, and ConnectionError if it may succeed
    later. It may wait for an issuer of tokens or for the KDC if `waits`."""
    waits: bool = False


OPEN: Final = Security()


def security_from(settings: Mapping[str, Any]) -> Security:
    """Read security settings that have librdkafka's names. Raise ClientSettingsError."""
    protocol = str(settings.get("security.protocol", "PLAINTEXT")).upper()
    tls = client_context(settings) if protocol.endswith("SSL") else None
    if not protocol.startswith("SASL"):
        return Security(tls)
    mechanism = str(settings.get("sasl.mechanism"))
    if mechanism not in MECHANISMS:
        raise ClientSettingsError(f"sasl.mechanism={mechanism}: {', '.join(MECHANISMS)}")
    client = _client_maker(mechanism, settings)

    def begin(host: str) -> Begun:
        begun = client(host)
        return Begun(begun, begun.first())

    return Security(tls, mechanism, begin, waits=mechanism in (OAUTHBEARER, GSSAPI))


def _client_maker(mechanism: str, settings: Mapping[str, Any]) -> Callable[[str], MechanismClient]:
    if mechanism == OAUTHBEARER:
        reader: TokenReader = settings["oauth_cb"]
        return lambda _: _token_client(reader)
    if mechanism == GSSAPI:
        login = kerberos_login(settings)
        return lambda host: GssapiClient(new_initiator(login, host), login.principal)
    user, password = settings.get("sasl.username"), settings.get("sasl.password")
    if not user or not password:
        raise ClientSettingsError(f"sasl.mechanism={mechanism} needs a user and a password")
    return lambda _: client_of(mechanism, str(user), str(password), random_hex(_NONCE_BYTES))


def _token_client(reader: TokenReader) -> MechanismClient:
    try:
        return OauthBearerClient(reader.read().text)
    except NoToken as error:
        raise ConnectionError(str(error)) from None


def is_certificate_refused(error: Exception) -> bool:
    """Return True if a side of TLS does not accept the other's certificate."""
    is_alert = isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or "")
    return is_alert or isinstance(error, ssl.SSLCertVerificationError)
