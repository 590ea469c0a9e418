"""Settings of the orders service."""

from dataclasses import dataclass

from common.process.settings import setting
from common.processing.settings import Settings


@dataclass(frozen=True, kw_only=True)
class OrdersSettings(Settings):
    """The settings that only the orders service has."""

    produce_timeout_ms: int = setting(5_000, "an order not acknowledged in this time gets 503")
    default_wait_ms: int = setting(10_000, "how long .../validated waits when not told")
    search_url: str = setting("", "the search service; without one GET /v1/orders is answered 501")
