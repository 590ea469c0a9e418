"""Settings of the payments service."""

from dataclasses import dataclass

from common.process.settings import setting
from common.processing.settings import Settings


@dataclass(frozen=True, kw_only=True)
class PaymentsSettings(Settings):
    """The settings that only the payments service has."""

    provider_books: str = setting("", "file of the simulated provider's books; default: in memory")
    provider_limit: int = setting(10_000, "the simulated provider declines amounts above this")
