"""The list of all topologies that run, with their tables."""

from collections.abc import Mapping

from common.kafka.topics import COMPACT, WEEK
from streams import (
    enrichment,
    order_bursts,
    order_flow,
    product_sales,
    validation_latency,
    windows,
)
from streams.settings import Settings
from streams.topology import Runtime, TableT

# Rows of single orders are deleted at the same time as the orders themselves.
TABLES = {
    "order-versions": {"cleanup.policy": "compact,delete", **WEEK},
    "customers": COMPACT,
    "order-bursts": COMPACT,
    "product-sales": COMPACT,
    "validation-latency": {"cleanup.policy": "compact,delete", **WEEK},
}
"""The settings of each table's changelog."""


def add_topologies(
    runtime: Runtime[TableT], tables: Mapping[str, TableT], settings: Settings
) -> None:
    """Declare every agent of this program."""
    order_flow.add_agents(runtime, tables["order-versions"])
    enrichment.add_agents(runtime, tables["customers"])
    order_bursts.add_agents(runtime, tables["order-bursts"], settings.grace_seconds * 1000)
    product_sales.add_agents(runtime, tables["product-sales"], windowings(settings))
    validation_latency.add_agents(runtime, tables["validation-latency"])


def windowings(settings: Settings) -> dict[str, windows.Windowing]:
    """Return the windows by product under the names of the views."""
    return {
        "tumbling": windows.tumbling(settings.tumbling_seconds, settings.grace_seconds),
        "hopping": windows.hopping(
            settings.hopping_seconds, settings.hopping_advance_seconds, settings.grace_seconds
        ),
    }
