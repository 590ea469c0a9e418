"""Kafka's client settings of security, in the spelling of librdkafka and of aiokafka.

Settings may also have librdkafka's own names (`ssl.ca.location`, `sasl.username`): both spellings
mean the same, and librdkafka's is the one that everything is translated to first.
"""

import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final

from common.credentials.jaas import ALLOWED_URLS, LoginSettingsError
from common.credentials.mechanisms import (
    MECHANISMS,
    is_of_login,
    login_settings,
    mechanism_of,
    require_librdkafka,
)
from common.credentials.stores import StoreError, is_pem, pem_of
from common.credentials.tls import VERSIONS, load_key, load_trusted, openssl_name

PREFIXES: Final = ("security.", "sasl.", "ssl.", ALLOWED_URLS)
"""What the names of security settings begin with."""
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_NOT_FOR_CLIENTS: Final = frozenset({"ssl.keystore.type", "ssl.truststore.type", ALLOWED_URLS})
"""The first bytes of a store decide its type. Allowed URLs are checked where a token is read."""
_TRUSTSTORE: Final = "ssl.truststore.location"
_KEYSTORE: Final = "ssl.keystore.location"
_RENAMED: Final = {
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "sasl.mechanisms": "sasl.mechanism",
}


class ClientSettingsError(ValueError):
    """A setting that cannot be used; the message names it, and never its value if it is secret."""


def is_security(name: str) -> bool:
    """Tell whether a setting says how to connect securely."""
    return name.startswith(PREFIXES)


def librdkafka_security(settings: Mapping[str, str]) -> dict[str, Any]:
    """Translate the security settings among `given`.

    Raise ClientSettingsError, also for a mechanism that the installed librdkafka does not know.
    """
    translated = client_security(settings)
    try:
        require_librdkafka(translated.get("sasl.mechanism", ""))
    except LoginSettingsError as error:
        raise ClientSettingsError(str(error)) from error
    return translated


def client_security(settings: Mapping[str, str]) -> dict[str, Any]:
    """Translate the security settings among `given` for `aiokafka_security`.

    Raise ClientSettingsError.
    """
    own = {name: value for name, value in settings.items() if is_security(name)}
    mechanism = mechanism_of(own)
    translated: dict[str, Any] = {}
    try:
        for name, value in own.items():
            if name not in _NOT_FOR_CLIENTS and not is_of_login(name, mechanism):
                translate = _TRANSLATIONS.get(name, _unchanged)
                translated |= translate(name, value, own)
        if str(translated.get("security.protocol", "SASL_SSL")).startswith("SASL"):
            translated |= login_settings(own)
    except (StoreError, LoginSettingsError) as error:
        raise ClientSettingsError(str(error)) from error
    return _that_count(translated)


def _that_count(translated: dict[str, Any]) -> dict[str, Any]:
    """Leave out what the protocol has no use for; librdkafka would warn of it."""
    protocol = translated.get("security.protocol", "SASL_SSL")
    unused = (
        *(() if protocol.startswith("SASL") else ("sasl.",)),
        *(() if protocol.endswith("SSL") else ("ssl.",)),
    )
    return {name: value for name, value in translated.items() if not name.startswith(unused)}


def _unchanged(name: str, value: str, _: Mapping[str, str]) -> dict[str, str]:
    return {_RENAMED.get(name, name): value}


def _protocol(name: str, value: str, own: Mapping[str, str]) -> dict[str, str]:
    protocol = value.strip().upper()
    if protocol not in PROTOCOLS:
        raise ClientSettingsError(f"{name}={value}: there are {', '.join(PROTOCOLS)}")
    if protocol.startswith("SASL") and not mechanism_of(own):
        raise ClientSettingsError(
            f"{name}={protocol} needs sasl.mechanism: {', '.join(MECHANISMS)}"
        )
    return {name: protocol}


def _truststore(name: str, value: str, own: Mapping[str, str]) -> dict[str, str]:
    if is_pem(name, value):
        return {"ssl.ca.location": value}
    return {"ssl.ca.pem": pem_of(name, value, own.get("ssl.truststore.password", "")).decode()}


def _keystore(name: str, value: str, own: Mapping[str, str]) -> dict[str, str]:
    if is_pem(name, value):
        return {"ssl.certificate.location": value, "ssl.key.location": value}
    password = own.get("ssl.key.password", "")
    pem = pem_of(name, value, password, own.get("ssl.keystore.password", "")).decode()
    return {"ssl.certificate.pem": pem, "ssl.key.pem": pem}


def _of_store(*_: object) -> dict[str, str]:
    """A store's password is used where the store is read."""
    return {}


def _host_check(name: str, value: str, _: Mapping[str, str]) -> dict[str, str]:
    algorithm = value.strip().lower() or "none"
    if algorithm not in ("https", "none"):
        raise ClientSettingsError(f"{name}={value}: https, or nothing to check no name")
    return {name: algorithm}


def _versions(name: str, value: str, _: Mapping[str, str]) -> dict[str, str]:
    if {each.strip() for each in value.split(",")} != set(VERSIONS):
        raise ClientSettingsError(f"{name}={value}: clients of librdkafka speak {list(VERSIONS)}")
    return {}


def _ciphers(name: str, value: str, _: Mapping[str, str]) -> dict[str, str]:
    names = (each.strip() for each in value.replace(":", ",").split(","))
    return {name: ":".join(openssl_name(each) if "_WITH_" in each else each for each in names)}


_TRANSLATIONS: Final[dict[str, Callable[[str, str, Mapping[str, str]], dict[str, str]]]] = {
    "security.protocol": _protocol,
    _TRUSTSTORE: _truststore,
    "ssl.truststore.password": _of_store,
    _KEYSTORE: _keystore,
    "ssl.keystore.password": _of_store,
    "ssl.endpoint.identification.algorithm": _host_check,
    "ssl.enabled.protocols": _versions,
    "ssl.cipher.suites": _ciphers,
}


def client_context(settings: Mapping[str, Any]) -> ssl.SSLContext:
    """Make the context of a client, of settings with librdkafka's names.

    Raise ClientSettingsError.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.get("ssl.endpoint.identification.algorithm") != "none"
    try:
        trusted = _pem(settings, "ssl.ca")
        if trusted:
            load_trusted(context, "ssl.ca", trusted)
        else:
            context.load_default_certs()
        chain, key = _pem(settings, "ssl.certificate"), _pem(settings, "ssl.key")
        if chain:
            # One store has both: OpenSSL takes the first key it finds.
            pem = chain if chain == key else key + b"\n" + chain
            load_key(context, "ssl.certificate", pem, settings.get("ssl.key.password", ""))
        suites = str(settings.get("ssl.cipher.suites", ""))
        if suites:
            context.set_ciphers(suites)
    except (StoreError, ssl.SSLError) as error:
        raise ClientSettingsError(str(error)) from error
    return context


def _pem(settings: Mapping[str, Any], name: str) -> bytes:
    text = settings.get(f"{name}.pem")
    if text:
        return str(text).encode()
    location = settings.get(f"{name}.location")
    return pem_of(f"{name}.location", str(location)) if location else b""
