"""What the cluster wants to know of its clients: the settings of type CLIENT_METRICS (KIP-714)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from broker.metadata.control.settings.client_metrics import (
    DEFAULT_INTERVAL_MS,
    INTERVAL,
    MATCH,
    METRICS,
    parse_interval,
    parse_list,
    parse_match,
)
from common.kafka.errors import KafkaError

ALL_METRICS: Final = "*"
"""The prefix that stands for all metrics, also on the wire."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """The wanted prefixes of metric names, and the clients that shall push them."""

    metrics: frozenset[str]
    interval_ms: int
    match: Mapping[str, Any]
    """A compiled pattern for each selector; a client must match all of them."""

    def matches(self, attributes: Mapping[str, str]) -> bool:
        """Return whether a client with these attributes, by selector, shall push."""
        return all(
            selector in attributes and pattern.fullmatch(attributes[selector]) is not None
            for selector, pattern in self.match.items()
        )


def read_subscription(settings: Mapping[str, str]) -> Subscription | None:
    """Return a subscription; None if the settings, of another program's log, are not valid."""
    try:
        return Subscription(
            frozenset(parse_list(METRICS, settings.get(METRICS, ""))),
            parse_interval(settings.get(INTERVAL, str(DEFAULT_INTERVAL_MS))),
            parse_match(settings.get(MATCH, "")),
        )
    except KafkaError:
        return None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one client shall push: prefixes of names, and how often."""

    metrics: tuple[str, ...] = ()
    interval_ms: int = DEFAULT_INTERVAL_MS

    def includes(self, name: str) -> bool:
        """Return whether a metric of this name is wanted."""
        return self.metrics == (ALL_METRICS,) or name.startswith(self.metrics)


def wanted_of(subscriptions: Iterable[Subscription], attributes: Mapping[str, str]) -> Wanted:
    """Return the union of the metrics of all subscriptions that match, at the lowest interval."""
    metrics: set[str] = set()
    interval_ms = DEFAULT_INTERVAL_MS
    for subscription in subscriptions:
        if subscription.matches(attributes):
            metrics |= subscription.metrics
            interval_ms = min(interval_ms, subscription.interval_ms)
    names = (ALL_METRICS,) if ALL_METRICS in metrics else tuple(sorted(metrics))
    return Wanted(names, interval_ms)
