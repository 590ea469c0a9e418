"""What a Fetch or a ShareFetch is about: it leaves out the partitions of its session."""

from collections.abc import Callable, Iterable

from broker.replication.fetch_session.session import FINAL_EPOCH, FULL_EPOCH
from broker.server.broker import Broker
from broker.share.session import SessionKey
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from common.kafka.protocol.messages.share_fetch import FetchPartition as SharePartition
from common.kafka.protocol.messages.share_fetch import FetchTopic as ShareTopic
from common.kafka.protocol.messages.share_fetch import ShareFetchRequest

FetchedBy = Callable[[int], Iterable[tuple[str | bytes, int]]]
"""Returns the partitions of a fetch session, by its id; none if there is no such session."""
SharedBy = Callable[[SessionKey], Iterable[tuple[bytes, int]]]
"""Returns those of a share session."""


class SessionPartitions:
    """Finds them in sessions."""

    def __init__(self, fetched_by: FetchedBy, shared_by: SharedBy) -> None:
        self._fetched_by = fetched_by
        self._shared_by = shared_by

    @classmethod
    def of(cls, broker: Broker) -> "SessionPartitions":
        """Find them in the sessions of a broker."""

        def fetched_by(session_id: int) -> Iterable[tuple[str | bytes, int]]:
            session = broker.fetch_sessions.find(session_id)
            return () if session is None else session.partitions

        def shared_by(key: SessionKey) -> Iterable[tuple[bytes, int]]:
            session = broker.shares.sessions.find(key)
            return () if session is None else session.partitions

        return cls(fetched_by, shared_by)

    def listed(self, request: Message) -> Message | None:
        """Return a request with all its partitions; None if it has no session."""
        if isinstance(request, FetchRequest):
            return None if request.session_epoch == FINAL_EPOCH else self._of_fetch(request)
        return self._of_share_fetch(request) if isinstance(request, ShareFetchRequest) else None

    def _of_fetch(self, request: FetchRequest) -> FetchRequest:
        keys = {
            (topic.topic or topic.topic_id, each.partition)
            for topic in request.topics
            for each in topic.partitions
        }
        if request.session_epoch != FULL_EPOCH:
            keys |= {*self._fetched_by(request.session_id)}
        for topic in request.forgotten_topics_data:
            keys -= {(topic.topic or topic.topic_id, number) for number in topic.partitions}
        topics: dict[str | bytes, FetchTopic] = {}
        for name, number in sorted(keys, key=str):
            named = FetchTopic(topic=name) if isinstance(name, str) else FetchTopic(topic_id=name)
            topics.setdefault(name, named).partitions.append(FetchPartition(partition=number))
        return FetchRequest(topics=list(topics.values()))

    def _of_share_fetch(self, request: ShareFetchRequest) -> ShareFetchRequest:
        key = SessionKey(request.group_id or "", request.member_id or "")
        keys = {
            (topic.topic_id, each.partition_index)
            for topic in request.topics
            for each in topic.partitions
        }
        if request.share_session_epoch > 0:
            keys |= {*self._shared_by(key)}
        for topic in request.forgotten_topics_data:
            keys -= {(topic.topic_id, number) for number in topic.partitions}
        topics: dict[bytes, ShareTopic] = {}
        for topic_id, number in sorted(keys):
            topic_of = topics.setdefault(topic_id, ShareTopic(topic_id=topic_id))
            topic_of.partitions.append(SharePartition(partition_index=number))
        return ShareFetchRequest(
            group_id=request.group_id, member_id=request.member_id, topics=list(topics.values())
        )
