"""One Fetch that is being handled: its partitions, its follower if any, and its session.

There is one object per request, and none per partition, because one is made for every fetch.
"""

from collections.abc import Callable, Sequence

from broker.replication.fetch_session.session import FetchSession
from broker.server.network.dispatch import RequestContext
from broker.server.replication.resting import SessionRest
from common.kafka.protocol.messages.fetch import FetchPartition, FetchRequest, ReplicaState

FIRST_VERSION_FROM_FOLLOWERS = 11
FIRST_VERSION_WITH_TOPIC_IDS = 13
FIRST_VERSION_WITH_REPLICA_STATE = 15
READ_COMMITTED = 1
DEBUGGING_REPLICA_ID = -2

Key = tuple[bytes | str, int]
"""Topic id, or in old versions topic name, and partition."""
Asked = Sequence[tuple[Key, FetchPartition]]
RackOf = Callable[[int], str | None]


class Question:
    """A Fetch under way. A partition that is named twice is read once; its last entry counts."""

    __slots__ = (
        "asked",
        "by_id",
        "context",
        "follower",
        "is_debugging",
        "is_last",
        "is_read_committed",
        "max_bytes",
        "may_read_followers",
        "min_bytes",
        "rack_of",
        "request",
        "rest",
        "session",
    )

    def __init__(
        self,
        context: RequestContext,
        request: FetchRequest,
        max_bytes: int,
        rack_of: RackOf | None,
    ) -> None:
        api_version = context.api_version
        self.context = context
        self.request = request
        self.by_id = api_version >= FIRST_VERSION_WITH_TOPIC_IDS
        self.follower: ReplicaState | None = None
        """The replica that sent the request; None for a consumer."""
        replica_id = request.replica_id
        if api_version >= FIRST_VERSION_WITH_REPLICA_STATE:
            replica_id = request.replica_state.replica_id
            if replica_id >= 0:
                self.follower = request.replica_state
        elif replica_id >= 0:
            self.follower = ReplicaState(replica_id=replica_id)
        self.is_debugging = replica_id == DEBUGGING_REPLICA_ID
        """True for a client that reads a replica to its end, whatever the others have."""
        self.may_read_followers = (
            self.follower is None and api_version >= FIRST_VERSION_FROM_FOLLOWERS
        )
        self.min_bytes = request.min_bytes
        self.max_bytes = min(max_bytes, request.max_bytes)
        self.is_read_committed = request.isolation_level == READ_COMMITTED
        self.rack_of = rack_of if request.rack_id and self.follower is None else None
        """Returns the rack of a broker; None unless the request is of a consumer with a rack."""
        self.session: FetchSession | None = None
        self.rest: SessionRest | None = None
        """The partitions with news in a follower's session."""
        self.is_last = False
        """True if the request has removed the last partition of its session, which closes it."""
        topics = request.topics
        if len(topics) == 1 and len(topics[0].partitions) == 1:
            (topic,), (wanted,) = topics, topics[0].partitions
            name = topic.topic_id if self.by_id else topic.topic
            self.asked: Asked = (((name, wanted.partition), wanted),)
        else:
            self.asked = self._distinct()

    def look_at_news(self) -> None:
        """Set the partitions to those with news in a follower's session."""
        session, rest = self.session, self.rest
        if session is None or rest is None:
            return
        known, news = session.partitions, rest.news
        for key in [key for key in news if key not in known]:
            del news[key]
        self.asked = [(key, known[key].asked) for key in news]

    def _distinct(self) -> Asked:
        by_id = self.by_id
        return list(
            {
                (topic.topic_id if by_id else topic.topic, wanted.partition): wanted
                for topic in self.request.topics
                for wanted in topic.partitions
            }.items()
        )
