"""Calls of other servers' JSON: the schema registry, and Connect. Answers are limited in size."""

import json
from typing import Any, Final

import aiohttp

from common.credentials.registry import RegistryAccess
from common.http.problems import ProblemError, unavailable

_TIMEOUT: Final = aiohttp.ClientTimeout(total=10)
_MAX_ANSWER_BYTES: Final = 32 << 20
_ASKED: Final = "application/vnd.schemaregistry.v1+json, application/json"
_OPEN: Final = RegistryAccess(None, None)


class HttpCalls:
    """Owns the connections to one server."""

    def __init__(self, url: str, name: str, access: RegistryAccess = _OPEN) -> None:
        """`name` says in errors which server it is."""
        self.url = url.rstrip("/")
        self._name = name
        self._access = access
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the JSON of an answer, None for an answer without; raise ProblemError."""
        if self._session is None:
            context, user = self._access
            self._session = aiohttp.ClientSession(
                timeout=_TIMEOUT,
                connector=None if context is None else aiohttp.TCPConnector(ssl=context),
                auth=None if user is None else aiohttp.BasicAuth(*user, encoding="utf-8"),
            )
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": _ASKED, "Content-Type": "application/json"}
        try:
            async with self._session.request(
                method, self.url + path, data=data, headers=headers, allow_redirects=False
            ) as response:
                raw = await response.content.read(_MAX_ANSWER_BYTES)
                while not response.content.at_eof() and len(raw) < _MAX_ANSWER_BYTES:
                    raw += await response.content.read(_MAX_ANSWER_BYTES - len(raw))
                status = response.status
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            reason = str(error) or type(error).__name__
            raise unavailable(f"{self._name} at {self.url} does not answer: {reason}") from None
        if len(raw) >= _MAX_ANSWER_BYTES:
            raise ProblemError(502, f"{self._name} answered with more than can be shown.")
        return self._checked(status, raw)

    def _checked(self, status: int, raw: bytes) -> Any:
        try:
            found = json.loads(raw) if raw else None
        except (ValueError, RecursionError):
            found = None
        if status >= 300:
            message = found.get("message") if isinstance(found, dict) else None
            refused = status if status in (403, 404, 409, 422) else 502
            raise ProblemError(refused, f"{self._name}: {message or f'HTTP {status}'}")
        return found

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
