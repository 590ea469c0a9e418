"""The last values that clients have pushed, for the broker's metrics page.

A sum that a client pushes as a delta is added up. The values of a client are dropped when it has
not pushed for a while. A value beyond a limit, or that cannot be shown, is dropped and counted.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

MAX_SERIES: Final = 20_000
MAX_SERIES_OF_A_CLIENT: Final = 2_000
MAX_LABELS: Final = 6
MAX_TEXT_CHARACTERS: Final = 200
OWN_LABELS: Final = ("client_id", "client_instance_id")

_KAFKA_PREFIX = "org.apache.kafka."
_not_in_names = re.compile(r"[^a-zA-Z0-9_]")

Labels = tuple[tuple[str, str], ...]


class PushedPoint(Protocol):
    """A value as it was pushed (`otlp.Point`)."""

    @property
    def name(self) -> str: ...
    @property
    def labels(self) -> Labels: ...
    @property
    def value(self) -> float: ...
    @property
    def is_counter(self) -> bool: ...
    @property
    def is_delta(self) -> bool: ...


class Series(NamedTuple):
    """One value of the metrics page."""

    name: str
    is_counter: bool
    labels: Labels
    value: float


@dataclass(slots=True)
class _Client:
    own_labels: Labels
    expires_ms: int = 0
    values: dict[tuple[str, bool, Labels], float] = field(default_factory=dict)


class PushedMetrics:
    """The clients' values. Invariant: `series_count` is the number of values of all clients."""

    def __init__(self) -> None:
        self.series_count = 0
        self.dropped_count = 0
        self._clients: OrderedDict[bytes, _Client] = OrderedDict()

    def push(
        self,
        instance_id: bytes,
        client: tuple[str, str],
        points: Iterable[PushedPoint | None],
        expires_ms: int,
    ) -> None:
        """Take over the values of a push; `client` has the values of OWN_LABELS."""
        known = self._clients.get(instance_id)
        if known is None:
            own = tuple(zip(OWN_LABELS, (_cut(text) for text in client), strict=True))
            known = self._clients[instance_id] = _Client(own)
        known.expires_ms = expires_ms
        for point in points:
            if point is None or not self._keep(known, point):
                self.dropped_count += 1

    def _keep(self, client: _Client, point: PushedPoint) -> bool:
        key = _key(point)
        if key is None:
            return False
        before = client.values.get(key)
        if before is None:
            is_full = len(client.values) >= MAX_SERIES_OF_A_CLIENT
            if is_full or self.series_count >= MAX_SERIES:
                return False
            self.series_count += 1
        client.values[key] = point.value + (before or 0 if point.is_delta else 0)
        return True

    def expire(self, now_ms: int) -> None:
        """Drop the values of clients that have not pushed for a while."""
        silent = [key for key, each in self._clients.items() if each.expires_ms < now_ms]
        for instance_id in silent:
            self.series_count -= len(self._clients.pop(instance_id).values)

    def __iter__(self) -> Iterator[Series]:
        """Iterate over all values; a name is a counter for all clients or for none."""
        kinds: dict[str, bool] = {}
        for client in self._clients.values():
            for (name, is_counter, labels), value in client.values.items():
                if kinds.setdefault(name, is_counter) == is_counter:
                    yield Series(name, is_counter, client.own_labels + labels, value)


def _key(point: PushedPoint) -> tuple[str, bool, Labels] | None:
    """Return the identity of a series; None if it is not valid or too long to be shown."""
    if not 0 < len(point.name) <= MAX_TEXT_CHARACTERS or len(point.labels) > MAX_LABELS:
        return None
    labels: dict[str, str] = {}
    for name, text in point.labels:
        shown = _not_in_names.sub("_", name)
        if max(len(name), len(text)) > MAX_TEXT_CHARACTERS or not shown or shown in OWN_LABELS:
            return None
        labels[f"_{shown}" if shown[0].isdigit() else shown.lstrip("_") or "label"] = text
    return _shown_name(point.name), point.is_counter, tuple(sorted(labels.items()))


def _shown_name(name: str) -> str:
    """Return a name for Prometheus that none of the broker's own metrics has."""
    shown = _not_in_names.sub("_", name).removesuffix("_total")
    return shown if name.startswith(_KAFKA_PREFIX) else f"client_{shown}"


def _cut(text: str) -> str:
    return text[:MAX_TEXT_CHARACTERS]
