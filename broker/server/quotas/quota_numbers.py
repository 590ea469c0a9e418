"""The rates of quotas for `/metrics`, under Kafka's names (ClientQuotaManager, ConnectionQuotas).

kafka_server_produce_byte_rate, kafka_server_fetch_byte_rate      bytes per second
kafka_server_request_request_time                                 percent of one thread
kafka_server_controller_mutation_tokens                           partitions that are left
kafka_server_<produce, fetch, request, controller_mutation>_throttle_time   milliseconds
kafka_server_socket_server_metrics_<name>                         connections per second

Clients choose names, so at most MAX_SHOWN holders of each quota are shown: those seen last.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from broker.quotas.accounts import Metered
from broker.quotas.client_quotas import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from broker.quotas.connection_rates import ALL_LISTENERS
from broker.quotas.rate import RateLimit
from broker.server.quotas.quotas import Quotas

MAX_SHOWN = 100
NAMES = {
    PRODUCER_BYTE_RATE: ("produce", "byte_rate", "Bytes produced per second"),
    CONSUMER_BYTE_RATE: ("fetch", "byte_rate", "Bytes fetched per second"),
    REQUEST_PERCENTAGE: ("request", "request_time", "Percentage of one thread used"),
    CONTROLLER_MUTATION_RATE: (
        "controller_mutation",
        "tokens",
        "Partitions that may be created or deleted before the client waits",
    ),
}
SOCKETS = "kafka_server_socket_server_metrics"


class QuotaNumber(NamedTuple):
    """One metric with its labels and their values."""

    name: str
    help: str
    labels: tuple[str, ...]
    values: tuple[str, ...]
    number: float


def quota_numbers(quotas: Quotas) -> Iterator[QuotaNumber]:
    """Return the rates of all holders of quotas, and of new connections."""
    now_ms = quotas.now_ms()
    shown: Counter[str] = Counter()
    for metered in quotas.accounts.metered():
        shown[metered.key] += 1
        if shown[metered.key] <= MAX_SHOWN:
            yield from _of_holder(metered, now_ms)
    for listener, rate in quotas.connections.of_listeners(now_ms):
        is_of_all = listener == ALL_LISTENERS
        yield QuotaNumber(
            f"{SOCKETS}_{'broker_' if is_of_all else ''}connection_accept_rate",
            "Connections accepted per second",
            () if is_of_all else ("listener",),
            () if is_of_all else (listener,),
            rate,
        )
    for address, rate in islice(quotas.connections.of_addresses(now_ms), MAX_SHOWN):
        yield QuotaNumber(
            f"{SOCKETS}_ip_connection_accept_rate",
            "Connections accepted per second from an address with a quota",
            ("ip",),
            (address,),
            rate,
        )


def _of_holder(metered: Metered, now_ms: int) -> Iterator[QuotaNumber]:
    group, name, about = NAMES[metered.key]
    used = metered.used
    number = used.per_second(now_ms) if isinstance(used, RateLimit) else used.tokens(now_ms)
    labels = ("user", "client_id")
    values = (metered.holder.user or "", metered.holder.client_id or "")
    yield QuotaNumber(f"kafka_server_{group}_{name}", about, labels, values, number)
    yield QuotaNumber(
        f"kafka_server_{group}_throttle_time",
        "Average time in milliseconds that clients above the quota were made to wait",
        labels,
        values,
        metered.throttled.average_ms(now_ms),
    )
