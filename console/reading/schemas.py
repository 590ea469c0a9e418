"""The schemas that records name, each asked for once; what cannot be had is asked again later."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from console.records.decoding import Schema, Schemas
from rest_proxy.refusals import RestError
from rest_proxy.schema_store import SchemaStore

_MAX_KEPT: Final = 500
_MAX_ASKED: Final = 20
"""Of one chunk: bytes that only look like schemas' ids must not flood the registry."""
_AGAIN_SECONDS: Final = 10.0


class SchemaShelf:
    """Owns what is known of each id. Without a registry it knows none, and takes none for an id."""

    def __init__(self, store: SchemaStore | None, now_seconds: Callable[[], float]) -> None:
        self.store = store
        self._now_seconds = now_seconds
        self._known: dict[int, Schema] = {}
        self._failed_at: dict[int, float] = {}

    @property
    def has_registry(self) -> bool:
        """Whether bytes may be read by schemas at all."""
        return self.store is not None

    @property
    def known(self) -> Schemas:
        """What is known now; a dictionary of its own, for a thread."""
        return dict(self._known)

    def unknown(self, ids: Iterable[int]) -> list[int]:
        """Return the ids that should be learnt before records are decoded."""
        if self.store is None:
            return []
        soon = self._now_seconds() - _AGAIN_SECONDS
        return sorted(
            each
            for each in ids
            if each not in self._known or self._failed_at.get(each, soon + 1) < soon
        )

    async def learn(self, ids: Iterable[int]) -> None:
        """Ask the registry for some schemas; the others stay without one, and say so."""
        asked = sorted(ids)
        await asyncio.gather(*(self._learn_one(each) for each in asked[:_MAX_ASKED]))
        for each in asked[_MAX_ASKED:]:
            self._put(each, Schema("", None, "not asked for: too many at once"), has_failed=True)

    async def _learn_one(self, schema_id: int) -> None:
        assert self.store is not None
        try:
            found = await self.store.with_id(schema_id)
        except RestError as error:
            self._put(schema_id, Schema("", None, str(error)), has_failed=True)
        else:
            self._put(schema_id, Schema(str(found.kind), found.codec), has_failed=False)

    def _put(self, schema_id: int, schema: Schema, *, has_failed: bool) -> None:
        self._known.pop(schema_id, None)
        self._failed_at.pop(schema_id, None)
        self._known[schema_id] = schema
        if has_failed:
            self._failed_at[schema_id] = self._now_seconds()
        while len(self._known) > _MAX_KEPT:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self._failed_at.pop(oldest, None)

    async def close(self) -> None:
        """Close the connections to the registry."""
        if self.store is not None:
            await self.store.close()


NO_SCHEMAS: Final[Mapping[int, Schema]] = {}
