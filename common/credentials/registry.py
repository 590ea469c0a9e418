"""How a client reaches a schema registry, with the settings of Confluent's serialisers.

`schema.registry.ssl.truststore.location` and its like say whom to trust. Name and password are
`basic.auth.user.info`, with `basic.auth.credentials.source=USER_INFO`; or they stand in the URL.
"""

import ssl
from collections.abc import Mapping
from typing import Final, NamedTuple

from common.credentials.translation import ClientSettingsError, client_context, librdkafka_security

_PREFIX: Final = "schema.registry."
_SOURCE, _USER_INFO = "basic.auth.credentials.source", "basic.auth.user.info"


class RegistryAccess(NamedTuple):
    """What a client of HTTP is made with."""

    context: ssl.SSLContext | None
    """None: the authorities that the machine trusts."""
    user: tuple[str, str] | None
    """Name and password, None where the URL has them or nobody asks."""


def registry_access(settings: Mapping[str, str]) -> RegistryAccess:
    """Read the settings. Raise ClientSettingsError."""
    told = {name.removeprefix(_PREFIX): value for name, value in settings.items()}
    unknown = sorted(
        name for name in told if name not in (_SOURCE, _USER_INFO) and not name.startswith("ssl.")
    )
    if unknown:
        raise ClientSettingsError(f"{unknown[0]}: no setting of a client of the schema registry")
    tls = {name: value for name, value in told.items() if name.startswith("ssl.")}
    source = told.get(_SOURCE, "URL").upper()
    if source not in ("URL", "USER_INFO"):
        raise ClientSettingsError(f"{_SOURCE}={source}: URL or USER_INFO")
    name, colon, password = told.get(_USER_INFO, "").partition(":")
    if source == "USER_INFO" and not colon:
        raise ClientSettingsError(f"{_SOURCE}=USER_INFO needs {_USER_INFO}=NAME:PASSWORD")
    return RegistryAccess(
        client_context(librdkafka_security(tls)) if tls else None,
        (name, password) if source == "USER_INFO" else None,
    )
