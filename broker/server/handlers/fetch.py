"""Fetch (key 1), versions 4-18: read batches, waiting until there are `min_bytes`.

v7 adds sessions (KIP-227): a request names what is different from the last one, and the answer
leaves out what is not new. v9 adds the leader epoch the client knows (KIP-320). v11 adds racks: a
consumer may read from a follower, and the leader tells it of one in its rack (KIP-392). v12 is
flexible and adds the epoch of the last record fetched (KIP-595). v13 names topics by id (KIP-516).
v15 moves the replica's state into a tagged field (KIP-903). v16 says who leads instead (KIP-951).

A follower is a client like any other, but reads up to the log's end, and where it reads from is
counted as its position: it is one only on the listener that brokers reach each other by. What is
read is in `fetch_read`.
"""

from collections.abc import Callable, Iterable
from itertools import islice

from broker.config.broker_config import BrokerConfig
from broker.errors import ErrorCode, KafkaError
from broker.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from broker.replication.fetch_session.session import FetchSession
from broker.replication.fetch_session.session_cache import MAX_PARTITIONS, FetchSessionCache
from broker.replication.fetch_session.session_epochs import FINAL_EPOCH, FULL_EPOCH, NO_SESSION
from broker.server.cluster.current_leaders import endpoints_of, find_leader
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.metrics import Metrics
from broker.server.network.dispatch import Answer, AnswerWalk, RequestContext
from broker.server.network.walks import QUICK_ITEMS_PER_STEP, Steps, Wide, emptied
from broker.server.replication.fetch_question import Key, Question
from broker.server.replication.fetch_read import FetchRead
from broker.server.replication.led_logs import LedLogs
from broker.server.replication.parked_fetches import ParkedFetch, ParkedFetches
from broker.server.replication.resting import SessionRest

FIRST_VERSION_WITH_LEADERS = 16
PARTITIONS_AT_ONCE = 64
"""With more of them a fetch is read step by step."""


class Fetch:
    """Reads batches, and parks who finds too little."""

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
        self._inter_broker_listener = config.replication.listener_name
        self._find_rack = self._rack_of if config.replication.selects_by_rack else None
        self._logs = led_logs
        self._parked_fetches = parked_fetches
        self._sessions = fetch_sessions
        self._metadata = metadata
        self._metrics = metrics

    def handle(self, context: RequestContext, request: FetchRequest) -> Answer | AnswerWalk:
        """Answer at once when there is enough, an error, or no time to wait; else park it."""
        question = Question(context, request, self._max_fetch_bytes, self._find_rack)
        if question.is_large:
            return self._put_together(question)
        has_session = request.session_id != NO_SESSION or request.session_epoch != FINAL_EPOCH
        if has_session or question.follower is not None:
            self._begin(question)
            if question.is_last:
                return FetchResponse()
        read = FetchRead(self._logs, question)
        if len(question.asked) > PARTITIONS_AT_ONCE:
            return self._walk(question, read)
        read.run(question.asked)
        read.is_first = False
        if read.is_enough or request.max_wait_ms <= 0 or not read.can_wait:
            return self._finish(question, read)
        return self._park(question, read)

    # --- who asks what ---

    def _begin(self, question: Question) -> None:
        """Go on with the session that the request names; raises KafkaError."""
        request, connection = question.request, question.context.connection
        is_follower = question.follower is not None
        if is_follower and connection.peer.listener_name != self._inter_broker_listener:
            raise KafkaError(  # No broker comes from there.
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                f"Replicas fetch from the listener {self._inter_broker_listener}",
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
            # It has more to ask: it shall not wait for what it has asked before.
            self._parked_fetches.answer_followers(connection)

    @staticmethod
    def _look_at_news(question: Question, session: FetchSession, now_ms: int) -> None:
        """Ask for no more of a follower's session than what is new in it."""
        rest = session.rest
        if not isinstance(rest, SessionRest):
            rest = session.rest = SessionRest(session.partitions, now_ms)
        rest.begin_look((key for key, _ in question.asked), session.partitions, now_ms)
        question.rest = rest
        question.look_at_news()

    def _rack_of(self, broker_id: int) -> str | None:
        broker = self._metadata.image.brokers.get(broker_id)
        return None if broker is None else broker.rack

    # --- now, step by step, or later ---

    def _put_together(self, question: Question) -> AnswerWalk:
        """Find out what is asked for step by step, and go on."""
        yield from question.put_together()
        self._begin(question)
        if question.is_last:
            return FetchResponse()
        return (yield from self._walk(question, FetchRead(self._logs, question)))

    def _walk(self, question: Question, read: FetchRead) -> AnswerWalk:
        """Read very many partitions step by step."""
        yield from read.walk(question.asked)
        read.is_first = False
        if read.is_enough or question.request.max_wait_ms <= 0 or not read.can_wait:
            return (yield from self._finish_in_steps(question, read))

        def read_all() -> AnswerWalk:
            again = read.again()
            question.look_at_news()
            yield from again.walk(question.asked)
            return (yield from self._finish_in_steps(question, again))

        def answer(is_final: bool) -> bool:
            # Woken by enough bytes, or by the time: either way this answer goes out.
            question.context.reply(read_all())
            return True

        return self._wait(question, read, answer)

    def _park(self, question: Question, first: FetchRead) -> Answer:
        def answer(is_final: bool) -> bool:
            if question.context.connection.is_closed:
                return True
            read = first.again()
            question.look_at_news()
            read.run(question.asked)
            if read.is_enough or is_final:
                question.context.reply(self._finish(question, read))
                return True
            return False

        return self._wait(question, first, answer)

    def _wait(self, question: Question, first: FetchRead, answer: Callable[[bool], bool]) -> Answer:
        later = question.context.defer()
        request = question.request
        parked = ParkedFetch(
            first.partitions,
            request.min_bytes - first.size_bytes,
            answer,
            is_follower=question.follower is not None,
            is_read_committed=question.is_read_committed,
        )
        self._parked_fetches.park(question.context.connection, parked, request.max_wait_ms)
        rest = question.rest
        if rest is not None:
            rest.parked = parked
        if first.is_overtaken or (rest is not None and rest.unseen_bytes):
            # What came between two steps of the walk has woken nobody.
            self._parked_fetches.wake((parked,))
        return later

    # --- the answer ---

    def _finish_in_steps(self, question: Question, read: FetchRead) -> AnswerWalk:
        told: list[tuple[Key, PartitionData]] = []
        response = self._finish(question, read, told)
        response.responses = yield from _by_topic_in_steps(told)
        yield from emptied(told)
        yield from emptied(read.answers)
        if isinstance(question.asked, list):
            yield from emptied(question.asked)
        return response

    def _finish(
        self,
        question: Question,
        read: FetchRead,
        apart: list[tuple[Key, PartitionData]] | None = None,
    ) -> FetchResponse:
        """Make the answer; what it says of partitions may be put apart, to be put in later."""
        if question.follower is None:
            self._metrics.fetched_bytes += read.size_bytes
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
                # Who was refused everything may only have said that he is a replica.
                is_privileged=question.follower is not None and read.can_wait,
                uses_topic_ids=question.by_id,
                now_ms=self._logs.clock.now_ms(),
            )
        response = FetchResponse(session_id=session_id)
        if apart is None:
            response.responses = _by_topic(answers)
        else:
            apart += answers
        if read.misdirected and question.context.api_version >= FIRST_VERSION_WITH_LEADERS:
            self._tell_leaders(question.context, read, response)
        return response

    def _tell_leaders(
        self, context: RequestContext, read: FetchRead, response: FetchResponse
    ) -> None:
        """Say who leads what this broker does not (KIP-951)."""
        leaders: set[int] = set()
        for topic, answered in read.misdirected:
            found = find_leader(self._metadata, topic, answered.partition_index)
            if found is not None:
                answered.current_leader = LeaderIdAndEpoch(**found._asdict())
                leaders.add(found.leader_id)
        addresses = endpoints_of(self._metadata, leaders, context.connection.peer.listener_name)
        response.node_endpoints = [NodeEndpoint(**address._asdict()) for address in addresses]


def _forgotten(question: Question) -> list[Key]:
    """Give what is taken out of the session; of more than it can have, no more than it can have."""
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


def _by_topic_in_steps(
    answers: Iterable[tuple[Key, PartitionData]],
) -> Steps[list[FetchableTopicResponse]]:
    responses: list[FetchableTopicResponse] = []
    topics: Wide[bytes | str, FetchableTopicResponse] = Wide()
    for number, ((topic, _), answer) in enumerate(answers, 1):
        found = topics.get(topic)
        if found is None:
            found = topics[topic] = _answer_of(topic)
            responses.append(found)
        found.partitions.append(answer)
        if not number % QUICK_ITEMS_PER_STEP:
            yield
    yield from topics.emptied()
    return responses


def _answer_of(topic: bytes | str) -> FetchableTopicResponse:
    if isinstance(topic, str):
        return FetchableTopicResponse(topic=topic)
    return FetchableTopicResponse(topic_id=topic)
