"""The rates of quotas for `/metrics`, under Kafka's names (ClientQuotaManager, ConnectionQuotas).

kafka_server_produce_byte_rate, kafka_server_fetch_byte_rate      bytes per second
kafka_server_request_request_time                                 percent of one thread
kafka_server_controller_mutation_tokens                           partitions that are left
kafka_server_<produce, fetch, request, controller_mutation>_throttle_time   milliseconds
kafka_server_socket_server_metrics_<name>                         connections per second

Clients choose names, so at most MAX_SHOWN holders of each quota are shown: those seen last.
"""

from collections.abc import Iterator
from itertools import islice

from prometheus_client.core import Metric

from broker.quotas.accounts import Metered
from broker.quotas.client_quotas import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from broker.quotas.connection_rates import ALL_LISTENERS
from broker.quotas.rate import RateLimit
from broker.server.metric_families import gauge, gauges
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
HOLDER = ("user", "client_id")
SOCKETS = "kafka_server_socket_server_metrics"


def quota_families(quotas: Quotas) -> Iterator[Metric]:
    """Return the rates of all holders of quotas, and of new connections."""
    now_ms = quotas.now_ms()
    shown: dict[str, list[Metered]] = {key: [] for key in NAMES}
    for metered in quotas.accounts.metered():
        if len(shown[metered.key]) < MAX_SHOWN:
            shown[metered.key].append(metered)
    for key, (group, name, about) in NAMES.items():
        yield gauges(
            f"kafka_server_{group}_{name}",
            about,
            HOLDER,
            [(_holder(each), _used(each, now_ms)) for each in shown[key]],
        )
        yield gauges(
            f"kafka_server_{group}_throttle_time",
            "Average time in milliseconds that clients above the quota were made to wait",
            HOLDER,
            [(_holder(each), each.throttled.average_ms(now_ms)) for each in shown[key]],
        )
    rates = dict(quotas.connections.of_listeners(now_ms))
    yield gauge(
        f"{SOCKETS}_broker_connection_accept_rate",
        "Connections accepted per second by all listeners",
        rates.pop(ALL_LISTENERS, 0),
    )
    yield gauges(
        f"{SOCKETS}_connection_accept_rate",
        "Connections accepted per second",
        ["listener"],
        [([listener], rate) for listener, rate in rates.items()],
    )
    yield gauges(
        f"{SOCKETS}_ip_connection_accept_rate",
        "Connections accepted per second from an address with a quota",
        ["ip"],
        [
            ([address], rate)
            for address, rate in islice(quotas.connections.of_addresses(now_ms), MAX_SHOWN)
        ],
    )


def _holder(metered: Metered) -> tuple[str, str]:
    return metered.holder.user or "", metered.holder.client_id or ""


def _used(metered: Metered, now_ms: int) -> float:
    used = metered.used
    return used.per_second(now_ms) if isinstance(used, RateLimit) else used.tokens(now_ms)
