"""Kerberos for clients of GSSAPI: which principal they are, and where its key is.

    sasl.kerberos.service.name=kafka
    sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required \\
        useKeyTab=true keyTab="orders.keytab" principal="orders@EXAMPLE";

`useTicketCache=true` in place of a key takes the tickets that `kinit` has got. The package `gssapi`
and the machine's Kerberos library do the rest; both find the realm by the machine's `krb5.conf`.
"""

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from common.credentials.jaas import LoginSettingsError

SERVICE: Final = "sasl.kerberos.service.name"
PRINCIPAL: Final = "sasl.kerberos.principal"
KEYTAB: Final = "sasl.kerberos.keytab"


class KerberosLogin(NamedTuple):
    """The identity of a client. Without a keytab it takes the tickets in the ticket cache."""

    service: str
    """The first part of the brokers' principals; the second is the name of the host."""
    principal: str = ""
    keytab: str = ""


def read_kerberos_login(text: Callable[[str], str], options: Mapping[str, str]) -> KerberosLogin:
    """Read the settings; `text` returns a setting, `options` are those of the JAAS line.

    Raise LoginSettingsError.
    """
    service = text(SERVICE) or options.get("serviceName", "")
    if not service:
        raise LoginSettingsError(f"GSSAPI needs {SERVICE}, the brokers' first name: kafka")
    principal = options.get("principal") or text(PRINCIPAL)
    keytab = (options.get("keyTab") or text(KEYTAB)).removeprefix("file://")
    if _is_true(options, "useKeyTab") or (not options and keytab):
        if not keytab or not principal:
            raise LoginSettingsError("sasl.jaas.config: useKeyTab=true needs keyTab and principal")
        return KerberosLogin(service, principal, keytab)
    if not _is_true(options, "useTicketCache"):
        raise LoginSettingsError(
            "sasl.jaas.config of GSSAPI needs useKeyTab=true with keyTab and principal, or "
            "useTicketCache=true: nobody is asked for a password"
        )
    if options.get("ticketCache"):
        raise LoginSettingsError(
            "sasl.jaas.config: name the ticketCache by the variable KRB5CCNAME"
        )
    return KerberosLogin(service, principal)


def _is_true(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "").lower() == "true"


def library() -> Any:
    """Return the package `gssapi`. Raise LoginSettingsError where it is not installed."""
    try:
        import gssapi
    except ImportError as error:
        raise LoginSettingsError("GSSAPI needs: pip install 'millstream[kerberos]'") from error
    return gssapi


def credentials(login: KerberosLogin) -> Any:
    """Return the credentials of an identity, without asking for a ticket.

    Raise gssapi's GSSError for a key or a cache that cannot be used, and LoginSettingsError.
    """
    gssapi = library()
    name = None
    if login.principal:
        name = gssapi.Name(login.principal, gssapi.NameType.kerberos_principal)
    store = None
    if login.keytab:
        store = {"client_keytab": login.keytab, "ccache": _cache_of(login)}
    return gssapi.Credentials(name=name, usage="initiate", store=store)


def _cache_of(login: KerberosLogin) -> str:
    """Return a place in this process's memory for an identity's tickets."""
    return f"MEMORY:millstream-{login.principal}-{login.keytab}"


class ProcessIdentity:
    """The Kerberos identity of this process: libraries such as aiokafka know only one."""

    def __init__(self) -> None:
        self._login: KerberosLogin | None = None
        self._lock = threading.Lock()

    def assume(self, login: KerberosLogin) -> None:
        """Get a ticket, and let the process use it and its renewals.

        It asks the KDC and waits for its answer. Raise LoginSettingsError without a ticket, and
        for a second identity.
        """
        with self._lock:
            if self._login is None:
                self._begin(login)
                self._login = login
            known = self._login
        if known[1:] != login[1:]:
            raise LoginSettingsError(
                f"sasl.jaas.config: this program is {known.principal or 'somebody'} to Kerberos "
                f"and cannot be {login.principal or 'somebody else'} too; use another mechanism "
                "for one of them"
            )

    def _begin(self, login: KerberosLogin) -> None:
        failure = library().exceptions.GSSError
        try:
            # Its lifetime is that of a ticket, so that one is fetched.
            credentials(login).lifetime  # noqa: B018
        except failure as error:
            where = login.keytab or "the ticket cache"
            said = " ".join(str(error).split())[:500]
            raise LoginSettingsError(
                f"no Kerberos ticket for {login.principal or 'anybody'} from {where}: {said}"
            ) from error
        # The variables of MIT's library: it renews the ticket with the key.
        if login.keytab:
            os.environ["KRB5_CLIENT_KTNAME"] = login.keytab
            os.environ["KRB5CCNAME"] = _cache_of(login)


IDENTITY: Final = ProcessIdentity()
"""That of this process: the library keeps it in the process's environment."""
