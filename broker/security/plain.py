"""The server's side of PLAIN (RFC 4616): one message, `[authzid] NUL authcid NUL password`."""

import hmac
from collections.abc import Mapping

from common.credentials.errors import AuthenticationFailed

MAX_MESSAGE_BYTES = 4096


class PlainServer:
    """Owns one exchange. `user` is set, and the client authenticated, when `is_complete`."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords
        self.is_complete = False
        self.user = ""
        self.claimed_user = ""
        self.is_by_token = False
        self.expires_at_ms: int | None = None

    def receive(self, message: bytes) -> bytes:
        """Check the one message; return the empty answer. Raises AuthenticationFailed."""
        if self.is_complete or len(message) > MAX_MESSAGE_BYTES:
            raise AuthenticationFailed("expected one PLAIN message")
        try:
            parts = message.decode().split("\0")
        except UnicodeDecodeError as error:
            raise AuthenticationFailed("the PLAIN message is not UTF-8") from error
        if len(parts) != 3 or not parts[1] or not parts[2]:
            raise AuthenticationFailed("expected an authorization id, a user and a password")
        authorization_id, user, password = parts
        self.claimed_user = user
        # An authorization id of somebody else would be impersonation (CVE-2017-12610).
        if authorization_id not in {"", user}:
            raise AuthenticationFailed("the authorization id is not the user")
        known = self._passwords.get(user)
        is_same = hmac.compare_digest(password.encode(), ("" if known is None else known).encode())
        if known is None or not is_same:
            raise AuthenticationFailed("the user or the password is wrong")
        self.user = user
        self.is_complete = True
        return b""
