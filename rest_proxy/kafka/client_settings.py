"""The settings of clients, in the forms of librdkafka and of aiokafka. Pure.

They are given as `client.NAME` with librdkafka's names, most of which are the same in Java.
"""

import re
import ssl
from collections.abc import Mapping
from typing import Any, Final

_JAAS_OPTION: Final = re.compile(r"""(\w+)\s*=\s*("([^"]*)"|'([^']*)'|[^\s;]+)""")
KNOWN: Final = frozenset(
    {
        "security.protocol",
        "sasl.mechanism",
        "sasl.username",
        "sasl.password",
        "sasl.jaas.config",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.endpoint.identification.algorithm",
        "client.id",
    }
)


class ClientSettingsError(ValueError):
    """A setting that cannot be used; the message names it."""


def librdkafka_settings(bootstrap_servers: str, said: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings for clients of librdkafka; raises ClientSettingsError."""
    unknown = sorted(said.keys() - KNOWN)
    if unknown:
        raise ClientSettingsError(
            f"client.{unknown[0]} is none of client.{', client.'.join(sorted(KNOWN))}"
        )
    told: dict[str, Any] = {"bootstrap.servers": bootstrap_servers, "client.id": "rest-proxy"}
    for name, value in said.items():
        told.update(_jaas(value) if name == "sasl.jaas.config" else {name: value})
    return told


def aiokafka_settings(told: Mapping[str, Any]) -> dict[str, Any]:
    """Translate settings of librdkafka; raises ClientSettingsError for invalid files."""
    protocol = str(told.get("security.protocol", "PLAINTEXT")).upper()
    settings: dict[str, Any] = {
        "bootstrap_servers": told["bootstrap.servers"],
        "client_id": told["client.id"],
        "security_protocol": protocol,
    }
    if protocol.startswith("SASL"):
        settings["sasl_mechanism"] = told.get("sasl.mechanism", "PLAIN")
        settings["sasl_plain_username"] = told.get("sasl.username")
        settings["sasl_plain_password"] = told.get("sasl.password")
    if protocol.endswith("SSL"):
        settings["ssl_context"] = _ssl_context(told)
    return settings


def _ssl_context(told: Mapping[str, Any]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=told.get("ssl.ca.location"))
        if told.get("ssl.endpoint.identification.algorithm", "https") == "none":
            context.check_hostname = False
        if "ssl.certificate.location" in told:
            context.load_cert_chain(
                told["ssl.certificate.location"],
                told.get("ssl.key.location"),
                told.get("ssl.key.password"),
            )
    except (OSError, ValueError) as error:
        raise ClientSettingsError(f"client.ssl settings: {error}") from None
    return context


def _jaas(value: str) -> dict[str, str]:
    """Take the user's name and password out of a login module's line."""
    options = {found[1]: found[3] or found[4] or found[2] for found in _JAAS_OPTION.finditer(value)}
    if "username" not in options:
        raise ClientSettingsError("client.sasl.jaas.config has no username")
    return {"sasl.username": options["username"], "sasl.password": options.get("password", "")}
