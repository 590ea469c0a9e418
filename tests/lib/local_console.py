"""A console for tests, on a cluster of its own choice, and calls to it."""

import http.client
import json
from collections.abc import Generator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from millstream.testing.local_program import LocalProgram
from tests.lib.rest_calls import JSON, Answer, RestCalls


class LocalConsole(LocalProgram):
    """A console as a process; `options` are those of its command line."""

    module = "console"

    def __init__(self, bootstrap_servers: str, *options: str) -> None:
        super().__init__()
        self._options = ("--bootstrap-server", bootstrap_servers, "--port", "0", *options)

    def arguments(self, folder: Path) -> Sequence[str]:
        return self._options


class ConsoleCalls(RestCalls):
    """Calls to a console: JSON only."""

    def change(self, method: str, path: str, body: Any, **headers: str) -> Answer:
        return self.call(method, path, body, JSON, **headers)


Event = tuple[str, Any]


def streamed(url: str, path: str) -> Generator[Event, None, None]:
    """Yield the events of a stream as they come, until its end."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        assert response.status == 200, response.read()
        name = ""
        while line := response.readline().decode():
            kind, _, rest = line.strip().partition(": ")
            if kind == "event":
                name = rest
            elif kind == "data":
                yield name, json.loads(rest)
                if name == "end":
                    return
    finally:
        connection.close()


def events(url: str, path: str, limit: int = 10_000) -> list[Event]:
    """Return the events of a stream until its end, or so many."""
    return list(islice(streamed(url, path), limit))
