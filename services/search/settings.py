"""Settings of the search service."""

from dataclasses import dataclass

from common.process.settings import setting
from common.processing.settings import Settings


@dataclass(frozen=True, kw_only=True)
class SearchSettings(Settings):
    """The settings that only the search service has."""

    index: str = setting(
        "orders.sqlite", "a file, or Elasticsearch at http://user:password@host:9200"
    )
    index_name: str = setting("millstream-orders", "what the index is called in Elasticsearch")
    batch_interval_ms: int = setting(
        250,
        "a batch is begun at most this often, unless one is full: what is found is a moment old",
    )
