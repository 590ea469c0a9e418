"""Fetch (key 1), versions 4-18: read batches, waiting until there are `min_bytes`.

v7 adds sessions (KIP-227): a request names the differences from the last one, and the answer leaves
out partitions without news. v9 adds the leader epoch the client knows (KIP-320). v11 adds racks: a
consumer may read from a follower, and the leader names one in its rack (KIP-392). v12 is flexible
and adds the epoch of the last record fetched (KIP-595). v13 names topics by id (KIP-516). v15 moves
the replica's state into a tagged field (KIP-903). v16 names the current leader (KIP-951).

A follower is a client like any other, but reads up to the log's end, and its fetch offset is
recorded as its position. A client counts as a follower only on the listener by which brokers reach
each other. `fetch_read` reads the partitions.
"""

from collections.abc import Iterable
from itertools import islice

from broker.config.broker_config import BrokerConfig
from broker.replication.fetch_session.session import (
    FINAL_EPOCH,
    FULL_EPOCH,
    NO_SESSION,
    FetchSession,
)
from broker.replication.fetch_session.session_cache import MAX_PARTITIONS, FetchSessionCache
from broker.server.cluster.cluster_view import endpoints_of, find_leader
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.handlers.fetch.fetch_question import Key, Question
from broker.server.handlers.fetch.fetch_read import FetchRead
from broker.server.metrics import Metrics
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from broker.server.replication.parked_fetches import ParkedFetch, ParkedFetches, answer_followers
from broker.server.replication.partitions import LedLogs
from broker.server.replication.resting import SessionRest
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

FIRST_VERSION_WITH_LEADERS = 16
PARTITIONS_AT_ONCE = 64
"""A fetch of more partitions is read step by step."""


class Fetch:
    """Reads batches, and parks a fetch that finds too few bytes."""

    def __init__(
        self,
        config: BrokerConfig,
        led_logs: LedLogs,
        parked_fetches: ParkedFetches,
        fetch_sessions: FetchSessionCache,
        metadata: ClusterMetadata,
        metrics: Metrics,
    ) -> None:
        self._max_fetch_bytes = config.max_fetch_bytes
        # Without an authorizer, only the listener tells brokers from clients. With one, the right
        # CLUSTER_ACTION does; then brokers can move to another listener one after the other.
        has_authorizer = config.security.authorizer is not None
        self._only_listener = None if has_authorizer else config.replication.listener_name
        self._find_rack = self._rack_of if config.replication.selects_by_rack else None
        self._logs = led_logs
        self._parked_fetches = parked_fetches
        self._sessions = fetch_sessions
        self._metadata = metadata
        self._metrics = metrics

    def handle(self, context: RequestContext, request: FetchRequest) -> Answer | Steps[Answer]:
        """Answer at once if there are enough bytes, an error, or no time to wait."""
        question = Question(context, request, self._max_fetch_bytes, self._find_rack)
        has_session = request.session_id != NO_SESSION or request.session_epoch != FINAL_EPOCH
        if has_session or question.follower is not None:
            self._begin(question)
            if question.is_last:
                return FetchResponse()
        read = FetchRead(self._logs, question)
        if len(question.asked) > PARTITIONS_AT_ONCE:
            return self._read_in_steps(question, read)
        read.run(question.asked)
        # The bytes are compared first: they are usually enough, and this needs no call.
        if (
            read.size_bytes >= request.min_bytes
            or read.is_enough
            or request.max_wait_ms <= 0
            or not read.can_wait
        ):
            return self._finish(question, read)
        return self._wait(question, read)

    def hold(self, context: RequestContext, request: FetchRequest) -> Answer:
        """Answer without records: the consumer has used more than its quota."""
        question = Question(context, request, self._max_fetch_bytes, None)
        if request.session_id != NO_SESSION or request.session_epoch != FINAL_EPOCH:
            self._begin(question)
        session = question.session
        return FetchResponse(session_id=NO_SESSION if session is None else session.session_id)

    # --- the session ---

    def _begin(self, question: Question) -> None:
        """Continue the session that the request names; raises KafkaError."""
        request, connection = question.request, question.context.connection
        is_follower = question.follower is not None
        if is_follower and self._only_listener not in (None, connection.peer.listener_name):
            raise KafkaError(  # Brokers do not use this listener.
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                f"Replicas fetch from the listener {self._only_listener}",
            )
        session = self._sessions.resume(
            request.session_id,
            request.session_epoch,
            owner=connection.peer.host,
            uses_topic_ids=question.by_id,
        )
        if session is not None:
            question.session = session
            now_ms = self._logs.clock.now_ms()
            forgotten = _forgotten(question) if request.forgotten_topics_data else ()
            question.is_last = not self._sessions.update(session, question.asked, forgotten, now_ms)
            if is_follower:
                self._look_at_news(question, session, now_ms)
            else:
                question.asked = list(session.asked())
        if is_follower and not question.is_last:
            # The follower has sent another Fetch: its waiting one is answered.
            answer_followers(connection)

    @staticmethod
    def _look_at_news(question: Question, session: FetchSession, now_ms: int) -> None:
        """Limit a follower's session to the partitions that have news."""
        rest = session.rest
        if not isinstance(rest, SessionRest):
            rest = session.rest = SessionRest(session.partitions, now_ms)
        rest.begin_look((key for key, _ in question.asked), session.partitions, now_ms)
        question.rest = rest
        question.look_at_news()

    def _rack_of(self, broker_id: int) -> str | None:
        broker = self._metadata.image.brokers.get(broker_id)
        return None if broker is None else broker.rack

    # --- step by step, or later ---

    def _read_in_steps(self, question: Question, read: FetchRead) -> Steps[Answer]:
        """Read very many partitions, and wait if there are too few bytes."""
        yield from read.steps(question.asked)
        if read.is_enough or question.request.max_wait_ms <= 0 or not read.can_wait:
            return self._finish(question, read)
        return (yield from self._wait(question, read))

    def _wait(self, question: Question, first: FetchRead) -> Steps[Answer]:
        """Wait until there are enough bytes, or the time is over, and answer the records."""
        parked = self._park(question, first)
        while True:
            is_final: bool = yield parked
            read = first.again()
            question.look_at_news()
            if len(question.asked) > PARTITIONS_AT_ONCE:
                parked.end()  # An append between two steps must not wake this fetch.
                yield from read.steps(question.asked)
                break
            read.run(question.asked)
            if read.is_enough or is_final:
                parked.end()
                break
            parked.wait_on()
        return self._finish(question, read)

    def _park(self, question: Question, first: FetchRead) -> ParkedFetch:
        request = question.request
        parked = ParkedFetch(
            self._parked_fetches,
            first.partitions,
            request.min_bytes - first.size_bytes,
            is_follower=question.follower is not None,
            is_read_committed=question.is_read_committed,
            is_patient=request.min_bytes > 1,
        )
        self._parked_fetches.park(parked, request.max_wait_ms)
        rest = question.rest
        if rest is not None:
            rest.parked = parked
        if first.is_overtaken or (rest is not None and rest.unseen_bytes):
            # An append between two steps of the reading has not woken this fetch.
            self._parked_fetches.wake((parked,))
        return parked

    # --- the answer ---

    def _finish(self, question: Question, read: FetchRead) -> FetchResponse:
        if question.follower is None:
            self._metrics.traffic.note_fetched(read.answers)
        else:
            self._metrics.replicated_out_bytes += read.size_bytes
            if read.throttled_bytes:
                logs = self._logs
                logs.throttle.rate.record(read.throttled_bytes, logs.clock.now_ms())
        session_id, answers = NO_SESSION, read.answers
        if question.session is not None:
            session_id = question.session.session_id
            answers = question.session.select(answers)
        elif question.request.session_epoch == FULL_EPOCH:
            session_id = self._sessions.open(
                question.asked,
                answers,
                owner=question.context.connection.peer.host,
                # A client whose partitions were all refused may only claim to be a replica.
                is_privileged=question.follower is not None and read.can_wait,
                uses_topic_ids=question.by_id,
                now_ms=self._logs.clock.now_ms(),
            )
        response = FetchResponse(session_id=session_id, responses=_by_topic(answers))
        if read.misdirected and question.context.api_version >= FIRST_VERSION_WITH_LEADERS:
            self._tell_leaders(question.context, read, response)
        return response

    def _tell_leaders(
        self, context: RequestContext, read: FetchRead, response: FetchResponse
    ) -> None:
        """Add the leaders of partitions that this broker does not lead (KIP-951)."""
        leaders: set[int] = set()
        for topic, answered in read.misdirected:
            found = find_leader(self._metadata, topic, answered.partition_index)
            if found is not None:
                answered.current_leader = LeaderIdAndEpoch(**found._asdict())
                leaders.add(found.leader_id)
        addresses = endpoints_of(self._metadata, leaders, context.connection.peer.listener_name)
        response.node_endpoints = [NodeEndpoint(**address._asdict()) for address in addresses]


def _forgotten(question: Question) -> list[Key]:
    """Return the partitions to remove from the session, at most as many as a session can have."""
    named = (
        (topic.topic_id if question.by_id else topic.topic, partition)
        for topic in question.request.forgotten_topics_data
        for partition in topic.partitions
    )
    return [*islice(named, MAX_PARTITIONS)]


def _by_topic(answers: Iterable[tuple[Key, PartitionData]]) -> list[FetchableTopicResponse]:
    topics: dict[bytes | str, FetchableTopicResponse] = {}
    for (topic, _), answer in answers:
        found = topics.get(topic)
        if found is None:
            found = topics[topic] = (
                FetchableTopicResponse(topic=topic)
                if isinstance(topic, str)
                else FetchableTopicResponse(topic_id=topic)
            )
        found.partitions.append(answer)
    return list(topics.values())
