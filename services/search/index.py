"""The interface of an index, and the index at an address.

An index also keeps its position in each partition of `orders`, together with the documents. Reading
goes on from there, whatever the group has committed: a new index is filled from the beginning, and
one that was killed lacks nothing.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from services.search.domain import Document, Found, Question
from services.search.sqlite_index import SqliteIndex


class OrderIndex(Protocol):
    """Every call raises IndexAwayError when the index cannot be reached or written."""

    async def open(self) -> None:
        """Make the index if there is none; may be called again."""

    async def positions(self) -> dict[int, int]:
        """Return the next offset to read of every partition that has been read."""

    async def put(self, documents: Sequence[Document], positions: Mapping[int, int]) -> None:
        """Keep each document unless one of that version or a newer one is there; and positions."""

    async def find(self, question: Question) -> list[Found]:
        """Return orders, the newest first; one more than asked for, if there is one."""

    async def count(self) -> int:
        """Return how many documents there are."""

    async def close(self) -> None: ...


class WrongIndexError(ValueError):
    """The setting names no index that can be used here."""


def choose_index(address: str, name: str) -> OrderIndex:
    """Return the index at an address, not yet open."""
    if "://" not in address:
        return SqliteIndex(Path(address))
    if not address.startswith(("http://", "https://")):
        raise WrongIndexError("index: neither a file nor http://... or https://...")
    try:
        from services.search.elasticsearch_index import ElasticsearchIndex
    except ModuleNotFoundError as error:
        raise WrongIndexError(
            f"index: {error.name} is missing; pip install 'millstream[elasticsearch]'"
        ) from error
    return ElasticsearchIndex(address, name)
