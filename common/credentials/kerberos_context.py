"""Kerberos contexts of both sides, by the package `gssapi`."""

from typing import Any

from common.credentials.errors import AuthenticationFailed
from common.credentials.kerberos import KerberosLogin, credentials, library


def new_initiator(login: KerberosLogin, host: str) -> "KerberosContext":
    """Return the context of a client that connects to `host`; raises AuthenticationFailed."""
    gssapi = library()
    failure: type[Exception] = gssapi.exceptions.GSSError
    named = f"Kerberos as {login.principal or 'the user'} to {login.service}@{host}: "
    try:
        server = gssapi.Name(f"{login.service}@{host}", gssapi.NameType.hostbased_service)
        context = gssapi.SecurityContext(
            name=server, creds=credentials(login), mech=gssapi.MechType.kerberos, usage="initiate"
        )
    except failure as error:
        raise AuthenticationFailed(f"{named}{_said(error)}") from error
    return KerberosContext(context, failure, named)


class KerberosContext:
    """One security context; a failure of the library is a failed authentication.

    A client begins with an empty token.
    """

    def __init__(self, context: Any, failure: type[Exception], named: str = "") -> None:
        """`named` is what texts of failures begin with."""
        self._context = context
        self._failure = failure
        self._named = named

    @property
    def is_complete(self) -> bool:
        """True if the client has proved its principal; raises AuthenticationFailed.

        The package gives a failure back as a token, and raises it at the next question.
        """
        try:
            return bool(self._context.complete)
        except self._failure as error:
            raise AuthenticationFailed(f"{self._named}{_said(error)}") from error

    @property
    def initiator(self) -> str:
        """The client's principal; raises AuthenticationFailed."""
        try:
            return str(self._context.initiator_name)
        except self._failure as error:
            raise AuthenticationFailed(f"{self._named}{_said(error)}") from error

    def step(self, token: bytes) -> bytes:
        """Return the answer to a token; raises AuthenticationFailed."""
        try:
            return self._context.step(token or None) or b""
        except self._failure as error:
            raise AuthenticationFailed(f"{self._named}{_said(error)}") from error

    def wrap(self, message: bytes) -> bytes:
        """Return a message with a proof of this side; raises AuthenticationFailed."""
        try:
            wrapped: bytes = self._context.wrap(message, False).message
        except self._failure as error:
            raise AuthenticationFailed(f"{self._named}{_said(error)}") from error
        return wrapped

    def unwrap(self, token: bytes) -> bytes:
        """Return a message of the client; raises AuthenticationFailed."""
        try:
            message: bytes = self._context.unwrap(token).message
        except self._failure as error:
            raise AuthenticationFailed(f"{self._named}{_said(error)}") from error
        return message


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:500]
