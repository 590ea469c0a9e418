"""The login of a client, by the mechanism of SASL, in librdkafka's names.

OAUTHBEARER becomes a function that reads tokens (`oauth_cb`), which aiokafka's clients take theirs
from too. Not every library knows every mechanism: `require_librdkafka` tells.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from common.credentials.jaas import (
    KERBEROS_MODULE,
    OAUTHBEARER_MODULE,
    PLAIN_MODULE,
    SCRAM_MODULE,
    LoginSettingsError,
    parse_jaas,
)
from common.credentials.kerberos import (
    IDENTITY,
    KEYTAB,
    PRINCIPAL,
    SERVICE,
    KerberosLogin,
    read_kerberos_login,
)
from common.credentials.stores import Store
from common.credentials.tokens import READ, TokenReader, read_token_source

OAUTHBEARER: Final = "OAUTHBEARER"
GSSAPI: Final = "GSSAPI"
MODULES: Final = {
    "PLAIN": PLAIN_MODULE,
    "SCRAM-SHA-256": SCRAM_MODULE,
    "SCRAM-SHA-512": SCRAM_MODULE,
    OAUTHBEARER: OAUTHBEARER_MODULE,
    GSSAPI: KERBEROS_MODULE,
}
"""The mechanisms of Kafka, and the login module that configures each."""
MECHANISMS: Final = tuple(MODULES)
JAAS: Final = "sasl.jaas.config"
_OF_TOKENS: Final = ("sasl.oauthbearer.", "sasl.login.")
_KERBEROS: Final = (SERVICE, PRINCIPAL, KEYTAB)
"""The parts of a KerberosLogin."""


def mechanism_of(own: Mapping[str, str]) -> str:
    """Return the name of the mechanism as it is written; empty if there is none."""
    return (own.get("sasl.mechanism") or own.get("sasl.mechanisms") or "").strip()


def login_settings(own: Mapping[str, str]) -> dict[str, Any]:
    """Return what a client authenticates with. Raise LoginSettingsError."""
    mechanism = mechanism_of(own)
    options = _options(mechanism, own.get(JAAS, ""))
    match mechanism:
        case "OAUTHBEARER":
            return {"oauth_cb": TokenReader(_source(own, options))}
        case "GSSAPI":
            return _kerberos(own, options)
        case _:
            return _password(own, options)


def _password(own: Mapping[str, str], options: Mapping[str, str]) -> dict[str, Any]:
    if JAAS not in own:
        return {}
    if not options.get("username") or not options.get("password"):
        raise LoginSettingsError(
            f"{JAAS} needs username and password: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"
        )
    if options.get("tokenauth", "").lower() == "true":
        raise LoginSettingsError(
            f"{JAAS}: the programs' client libraries send no tokenauth, so a delegation token "
            "works with the administrative tools and with Java's clients only"
        )
    return {"sasl.username": options["username"], "sasl.password": options["password"]}


def other_module(mechanism: str) -> str:
    """Return the message about a login module of another mechanism."""
    default = "; sasl.mechanism is GSSAPI by default" if mechanism == GSSAPI else ""
    return f"{mechanism} takes {MODULES[mechanism]}{default}"


def _options(mechanism: str, text: str) -> Mapping[str, str]:
    if not text:
        return {}
    try:
        module, options = parse_jaas(text)
    except ValueError as error:
        raise LoginSettingsError(f"{JAAS}: {error}") from None
    expected = MODULES.get(mechanism, module)
    if module != expected:
        raise LoginSettingsError(f"{JAAS}: {other_module(mechanism)}")
    return options


def _source(own: Mapping[str, str], options: Mapping[str, str]) -> Any:
    unknown = sorted(
        name for name in own if name.startswith("sasl.oauthbearer.") and name not in READ
    )
    if unknown:
        raise LoginSettingsError(f"{unknown[0]} is not built for clients")
    return read_token_source(_reader(own), options, _authorities(own))


def _authorities(own: Mapping[str, str]) -> Store | None:
    """Return what the issuer's certificate is checked by: what the brokers' is checked by."""
    for setting in ("ssl.truststore.location", "ssl.ca.location"):
        if own.get(setting):
            return Store(setting, own[setting], "", own.get("ssl.truststore.password", ""))
    for setting in ("ssl.truststore.certificates", "ssl.ca.pem"):
        if own.get(setting):
            return Store(setting, "", own[setting], "")
    return None


def _kerberos(own: Mapping[str, str], options: Mapping[str, str]) -> dict[str, Any]:
    login = read_kerberos_login(_reader(own), options)
    return {name: value for name, value in zip(_KERBEROS, login, strict=True) if value}


def become(settings: Mapping[str, Any]) -> None:
    """Get a Kerberos ticket for this process, for libraries that take that of the process.

    Raise LoginSettingsError.
    """
    IDENTITY.assume(kerberos_login(settings))


def kerberos_login(settings: Mapping[str, Any]) -> KerberosLogin:
    """Return the identity that `login_settings` has translated."""
    return KerberosLogin(*(str(settings.get(name, "")) for name in _KERBEROS))


@cache
def require_librdkafka(mechanism: str) -> None:
    """Raise LoginSettingsError if librdkafka, as it is installed, does not know a mechanism."""
    if mechanism != GSSAPI:
        return
    from confluent_kafka import KafkaException, Producer

    asked = {"bootstrap.servers": "127.0.0.1:0", "builtin.features": "sasl_gssapi"}
    try:
        Producer(asked)
    except KafkaException as error:
        raise LoginSettingsError(
            "sasl.mechanism=GSSAPI: the installed confluent-kafka is built without it. Build it "
            "with Kerberos (pip install --no-binary confluent-kafka confluent-kafka, beside a "
            "librdkafka with libsasl2), or use SCRAM-SHA-512 or OAUTHBEARER"
        ) from error


def _reader(own: Mapping[str, str]) -> Callable[[str], str]:
    return lambda name: own.get(name, "")


def is_of_login(name: str, mechanism: str) -> bool:
    """Tell whether `login_settings` has read a setting, so that no library is told of it."""
    if mechanism == OAUTHBEARER and name.startswith(_OF_TOKENS):
        return True
    if mechanism == GSSAPI and name.startswith("sasl.kerberos."):
        return True
    return name == JAAS
