"""Settings of the aggregator."""

from dataclasses import dataclass

from common.process.settings import setting
from common.processing.settings import Settings


@dataclass(frozen=True, kw_only=True)
class AggregatorSettings(Settings):
    """The settings that only the aggregator has."""

    validation_timeout_ms: int = setting(60_000, "an order without all checks fails after this")
