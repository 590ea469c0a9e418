"""What clients have asked of a broker.

    calls = broker.requests.list(api=("InitProducerId", "Produce"), client_id="payments")
    assert [call.api for call in calls] == ["InitProducerId", "Produce", "Produce"]
    assert broker.requests.count(api="Produce", topic="orders") == 2

The broker keeps the last calls, eight megabytes of them. Calls of other brokers are left out.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypedDict, Unpack

from millstream.testing.broker_control import BrokerControl

POLL_SECONDS: Final = 0.01


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a client."""

    id: int
    api: str
    version: int
    client_id: str
    principal: str
    topics: Mapping[str, Sequence[int]]
    """The partitions by topic; none where an API names topics alone."""
    groups: Sequence[str]
    transactional_ids: Sequence[str]
    at_ms: int
    """When it came, in milliseconds since 1970 UTC."""
    duration_ms: float | None
    """The time until it was answered; None while the client waits, or if it never was."""
    errors: Sequence[str]
    """The errors of its answer, by Kafka's names, each once."""
    faults: Sequence[int]
    """The ids of the rules that hit it."""


class Wanted(TypedDict, total=False):
    """Which calls are meant."""

    api: str | Sequence[str]
    client_id: str
    principal: str
    topic: str
    group: str
    transactional_id: str


class Requests:
    """The calls that the clients of one broker, or of a cluster, have made."""

    def __init__(self, controls: Callable[[], Sequence[BrokerControl]]) -> None:
        self._controls = controls

    def list(self, **wanted: Unpack[Wanted]) -> list[Call]:
        """Return the calls, the oldest first."""
        found = [call for control in self._controls() for call in _calls(control, wanted)]
        return sorted(found, key=lambda call: (call.at_ms, call.id))

    def count(self, **wanted: Unpack[Wanted]) -> int:
        """Return how many calls there were."""
        return len(self.list(**wanted))

    def wait_count(self, count: int, timeout: float = 10.0, **wanted: Unpack[Wanted]) -> None:
        """Wait until there were so many calls; raise TimeoutError after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while (found := self.count(**wanted)) < count:
            if time.monotonic() >= deadline:
                raise TimeoutError(f"{found} calls of {wanted} after {timeout} s, not {count}")
            time.sleep(POLL_SECONDS)

    def clear(self) -> None:
        """Forget the calls so far."""
        for control in self._controls():
            control.call("DELETE", "/requests")


def _calls(control: BrokerControl, wanted: Wanted) -> "list[Call]":
    query: dict[str, Any] = dict(wanted)
    apis = query.pop("api", None)
    if isinstance(apis, str):
        query["api"] = apis
        apis = None
    calls: list[Call] = []
    after = 0
    while True:
        page = control.call("GET", "/requests", query={**query, "after": str(after)})
        calls += [Call(**each) for each in page["requests"]]
        if not page["requests"] or page["last_id"] == after:
            return [call for call in calls if apis is None or call.api in apis]
        after = page["last_id"]
