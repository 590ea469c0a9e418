"""GSSAPI of one listener: the broker's principal and key, and the rules of short names."""

from collections.abc import Mapping
from dataclasses import dataclass

from broker.config.sources import invalid
from broker.config.values import Values
from broker.security.kerberos_names import ShortNames, parse_kerberos_principal

RULES = "sasl.kerberos.principal.to.local.rules"
SERVICE = "sasl.kerberos.service.name"


@dataclass(frozen=True, slots=True)
class KerberosConfig:
    """How a listener proves itself to clients, and names them."""

    principal: str
    keytab: str
    names: ShortNames


def read_kerberos_config(
    values: Values, listener: str, options: Mapping[str, str]
) -> KerberosConfig:
    """Read the settings; `options` are those of the JAAS line.

    Raises KafkaError(INVALID_CONFIG).
    """
    setting = f"listener.name.{listener.lower()}.gssapi.sasl.jaas.config"
    principal, keytab = options.get("principal", ""), options.get("keyTab", "")
    if not principal or not keytab or options.get("useKeyTab", "").lower() != "true":
        raise invalid(f"{setting} needs useKeyTab=true, keyTab and principal")
    try:
        parsed = parse_kerberos_principal(principal)
    except ValueError as error:
        raise invalid(f"{setting}: {error}") from error
    service = values.text(SERVICE)
    if service and service != parsed.components[0]:
        raise invalid(f"{SERVICE}={service}: the principal of {setting} is of another service")
    try:
        names = ShortNames(values.items(RULES), parsed.realm)
    except ValueError as error:
        raise invalid(f"{RULES}: {error}") from error
    try:
        import gssapi  # noqa: F401 - an extra
    except ImportError as error:
        raise invalid("GSSAPI needs: pip install 'millstream[kerberos]'") from error
    return KerberosConfig(principal, keytab.removeprefix("file://"), names)
