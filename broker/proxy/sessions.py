"""The partitions of the fetch sessions of a broker behind, as its clients have named them."""

from typing import Any, Final

from broker.replication.fetch_session.session import FINAL_EPOCH
from broker.server.testing.session_partitions import SessionPartitions
from broker.share.session import SessionKey
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.fetch import FetchRequest, FetchResponse
from common.kafka.protocol.messages.share_fetch import ShareFetchRequest
from common.process.bounded_cache import BoundedCache

MAX_BYTES: Final = 16 << 20
_PARTITION_BYTES: Final = 100


class Sessions:
    """Owns them; the least recently used ones are forgotten above MAX_BYTES."""

    def __init__(self) -> None:
        self._known: BoundedCache[int | SessionKey, frozenset[tuple[Any, int]]] = BoundedCache(
            MAX_BYTES
        )
        self._partitions = SessionPartitions(self._of, self._of)

    def listed(self, request: Message) -> Message | None:
        """Return a request with all its partitions; None if it has no session."""
        return self._partitions.listed(request)

    def note(self, request: Message, listed: Message | None, answer: Message) -> None:
        """Keep what a request named, as its answer has just been given."""
        if isinstance(request, FetchRequest) and isinstance(answer, FetchResponse):
            if request.session_epoch != FINAL_EPOCH and answer.session_id:
                self._keep(answer.session_id, listed)
        elif isinstance(request, ShareFetchRequest) and request.share_session_epoch != FINAL_EPOCH:
            self._keep(SessionKey(request.group_id or "", request.member_id or ""), listed)

    def _of(self, key: int | SessionKey) -> frozenset[tuple[Any, int]]:
        return self._known.get(key) or frozenset()

    def _keep(self, key: int | SessionKey, listed: Message | None) -> None:
        if isinstance(listed, FetchRequest):
            named = {
                (each.topic or each.topic_id, p.partition)
                for each in listed.topics
                for p in each.partitions
            }
        elif isinstance(listed, ShareFetchRequest):
            named = {
                (each.topic_id, p.partition_index)
                for each in listed.topics
                for p in each.partitions
            }
        else:
            return
        self._known.put(key, frozenset(named), _PARTITION_BYTES * (1 + len(named)))
