"""Kerberos contexts of listeners, by the package `gssapi`."""

from typing import Any

from broker.config.kerberos_config import KerberosConfig
from broker.config.sources import invalid
from common.credentials.kerberos_context import KerberosContext


class KerberosAcceptor:
    """Owns the credential of a listener, which its keytab gives."""

    def __init__(self, config: KerberosConfig) -> None:
        """Read the keytab; raises KafkaError(INVALID_CONFIG)."""
        import gssapi

        self._gssapi: Any = gssapi
        name = self._gssapi.Name(config.principal, self._gssapi.NameType.kerberos_principal)
        try:
            self._credential = self._gssapi.Credentials(
                name=name,
                usage="accept",
                store={"keytab": config.keytab},
                # Kerberos alone, and no SPNEGO, which the library offers too.
                mechs=[self._gssapi.MechType.kerberos],
            )
        except self._gssapi.exceptions.GSSError as error:
            raise invalid(f"keyTab={config.keytab}: {error}") from error

    def new_context(self) -> KerberosContext:
        """Return the context of one exchange."""
        context = self._gssapi.SecurityContext(creds=self._credential, usage="accept")
        return KerberosContext(context, self._gssapi.exceptions.GSSError)
