"""Speaks to the control of a broker that was started with `--testing`, by HTTP."""

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import unquote, urlencode, urlsplit

SECONDS: Final = 10.0
"""The time that one request may take."""
RESTART_SECONDS: Final = 60.0
"""The same for a request with which a broker starts anew."""


class ControlError(RuntimeError):
    """A broker refused what a test asked of its control; the message has the reason."""


class ControlLostError(ControlError):
    """The broker does not answer: it has ended, or is frozen."""


class BrokerControl:
    """The control of one node, also after the node has been started again.

    `run` counts the starts. What the rules of an earlier run have hit is kept.
    """

    def __init__(self, url: Callable[[], str]) -> None:
        """`url` returns the address of the node's pages; it raises if the node does not run.

        With `http://user:password@...` each request has the password.
        """
        self._url_of_node = url
        self._url: str | None = None
        self._headers: dict[str, str] = {}
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self.run = 1
        self.ahead_ms = 0
        """How far the node's clock was moved: a new process gets it again."""
        self._ended: dict[tuple[int, int], dict[str, Any]] = {}

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        seconds: float = SECONDS,
    ) -> Any:
        """Make one request and return the value of the answer; raise ControlError."""
        if self._url is None:
            self._url, self._headers = _address(self._url_of_node())
        parameters = "?" + urlencode(query) if query else ""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._url + path + parameters, data, self._headers, method=method
        )
        try:
            with self._opener.open(request, timeout=seconds) as answer:
                content = answer.read()
        except urllib.error.HTTPError as error:
            with error:
                raise ControlError(_detail(error)) from None
        except OSError as error:
            raise ControlLostError(f"the broker's control does not answer: {error}") from error
        return json.loads(content) if content else None

    def rule(self, run: int, rule_id: int) -> dict[str, Any] | None:
        """Return a rule with its counts; None if it ended with a node that nobody could ask."""
        if run != self.run:
            return self._ended.get((run, rule_id))
        found: dict[str, Any] = self.call("GET", f"/faults/{rule_id}")
        return found

    def remove_rule(self, run: int, rule_id: int) -> dict[str, Any] | None:
        """Remove a rule and return it, as `rule` does."""
        if run != self.run:
            return self._ended.get((run, rule_id))
        with suppress(ControlLostError):  # It has ended by itself, as with a full disk.
            found: dict[str, Any] = self.call("DELETE", f"/faults/{rule_id}")
            return found
        return None

    def end_run(self, *, can_ask: bool) -> None:
        """Keep the counts of the rules: the node ends, and its rules end with it."""
        if can_ask:
            with suppress(ControlError, AssertionError):
                for rule in self.call("GET", "/faults", seconds=1.0)["faults"]:
                    self._ended[self.run, rule["id"]] = rule
        self.run += 1
        self._url = None


def _address(url: str) -> tuple[str, dict[str, str]]:
    """Return the address without user and password, and the headers for them."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, {}
    told = base64.b64encode(unquote(user).encode()).decode()
    return parts._replace(netloc=host).geturl(), {"Authorization": f"Basic {told}"}


def _detail(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read())["detail"])
    except (ValueError, KeyError, OSError):
        return f"{error.code} {error.reason}"
