"""aiokafka's consumer, with what its public interface lacks.

No other file outside `streams/around_faust` depends on how aiokafka works inside.
"""

import asyncio
from typing import Any, Final, Protocol

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener

METADATA_MAX_AGE_MS: Final = 5_000
"""How long a consumer of aiokafka keeps its metadata. When a broker that lost a leadership refuses
to list an offset, aiokafka asks the same broker again until its metadata expires: five minutes by
default."""


class Pattern(Protocol):
    """A compiled pattern of `re` or of RE2."""

    def match(self, string: str, /) -> object:
        """Return a true value if the string matches at its beginning."""
        ...


class Consumer(AIOKafkaConsumer):  # type: ignore[misc, unused-ignore]
    """Owns the connections, the fetches and the membership in a group, as `AIOKafkaConsumer`."""

    def membership(self) -> tuple[int, str]:
        """Return the generation of the group and the member's id in it."""
        coordinator: Any = self._coordinator
        return coordinator.generation, coordinator.member_id

    def subscribe_matching(self, pattern: Pattern, listener: ConsumerRebalanceListener) -> None:
        """Join the group for every topic whose name matches.

        `subscribe` takes only a pattern of `re`. That can block the loop for ever; one of RE2
        cannot.
        """
        self._subscription.subscribe_pattern(pattern=pattern, listener=listener)
        self._client.set_topics([])

    async def stop(self) -> None:
        """Leave the group and close every connection.

        aiokafka can raise the `CancelledError` of a fetch that is backing off (`Fetcher.close`),
        and leaves the connections open then.
        """
        try:
            await super().stop()
        except asyncio.CancelledError:
            await self._client.close()
            raise
