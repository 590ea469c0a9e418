"""Sends one request to a worker's REST interface and returns the answer."""

import base64
import http.client
import json
import sys
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode, urlsplit

from common.process.clock import now_ms

_TIMEOUT_SECONDS: Final = 100.0
"""A little longer than a worker's own time-out."""
_REBALANCE_MS: Final = 30_000
_SILENT_MS: Final = 2_000
"""After this time a user at a terminal is told what the command waits for."""
_PAUSE_SECONDS: Final = 0.5
_PASSING: Final = ("rebalance", "momentarily")
_CONNECTIONS: Final = {
    "http": http.client.HTTPConnection,
    "https": http.client.HTTPSConnection,
}


class ClientError(Exception):
    """The worker refused or cannot be reached; the message is shown to the user."""


class ConnectRest:
    """Asks the worker at a URL. While the cluster shares its work anew, it asks again."""

    def __init__(self, url: str) -> None:
        """Raises ClientError for an invalid URL."""
        parts = urlsplit(url if "://" in url else f"http://{url}")
        try:
            self._connect_to = _CONNECTIONS[parts.scheme], parts.hostname, parts.port
        except (KeyError, ValueError):
            raise ClientError(f"--url has to be http://host:port, not {url}") from None
        if not parts.hostname:
            raise ClientError(f"--url has to be http://host:port, not {url}")
        self._path = parts.path.rstrip("/")
        self.shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._headers = {"Accept": "application/json"}
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"

    def ask(
        self, method: str, *path: str, body: Any = None, query: Mapping[str, Any] | None = None
    ) -> Any:
        """Return what the worker says, None when nothing. Raises ClientError."""
        where = self._path + "/" + "/".join(quote(part, safe="") for part in path)
        if query:
            where += "?" + urlencode(query, doseq=True)
        begun_ms = now_ms()
        deadline_ms = begun_ms + _REBALANCE_MS
        is_told = not sys.stderr.isatty()
        while True:
            status, said = self._ask_once(method, where, body)
            if status < 400:
                return said
            message = _message(status, said)
            is_passing = status == 503 or (
                status == 409 and any(word in message for word in _PASSING)
            )
            if not is_passing or now_ms() > deadline_ms:
                raise ClientError(message)
            if not is_told and now_ms() - begun_ms > _SILENT_MS:
                is_told = True
                sys.stderr.write(f"waiting: {message}\n")
            time.sleep(_PAUSE_SECONDS)

    def _ask_once(self, method: str, where: str, body: Any) -> tuple[int, Any]:
        made, host, port = self._connect_to
        connection = made(host or "", port, timeout=_TIMEOUT_SECONDS)
        data = None if body is None else json.dumps(body).encode()
        told = {} if body is None else {"Content-Type": "application/json"}
        try:
            connection.request(method, where, data, {**self._headers, **told})
            answered = connection.getresponse()
            return answered.status, _read(answered)
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            if isinstance(error, ConnectionRefusedError):
                reason += "; start one with millstream connect start, or name it with --url"
            raise ClientError(f"no answer from a worker at {self.shown}: {reason}") from error
        finally:
            connection.close()


def _read(answered: http.client.HTTPResponse) -> Any:
    data = answered.read()
    if not data:
        return None
    if answered.headers.get_content_type() != "application/json":
        if answered.status < 400:
            raise ValueError("what answers there is no Connect worker")
        return None
    return json.loads(data)


def _message(status: int, said: Any) -> str:
    if isinstance(said, dict) and said.get("message"):
        return str(said["message"])
    return f"HTTP {status} {http.client.responses.get(status, '')}".strip()
