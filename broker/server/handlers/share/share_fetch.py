"""ShareFetch (key 78), versions 1-2: acknowledge records of a share session, and acquire others.

The session (KIP-932) belongs to the connection and to a member of a share group; a request names
the partitions that are new in it, or acknowledged. Acknowledging and acquiring go on at the same
time, and both results are in one answer. v2 adds the acquire mode (KIP-1206) and requests that
renew locks and acquire nothing (KIP-1222).

A fetch that finds too few bytes waits, like a consumer's, for the partitions to grow, and also for
records of its share-partitions that become available.

An append, or records that become available, may wake hundreds of members. They look in the order in
which they began to wait, and each takes what it can: a fetch goes on only if those before it have
left something, so the work depends on the records, and not on the number of members.
"""

import asyncio
from collections.abc import Collection, Iterable
from itertools import chain

from broker.config.broker_config import BrokerConfig
from broker.server.cluster.cluster_view import SAYS_WHO_LEADS, tell_leaders
from broker.server.handlers.share.share_read import ShareRead, Wanted
from broker.server.metrics import Metrics
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Later, Steps
from broker.server.replication.parked_fetches import ParkedFetch, ParkedFetches
from broker.server.share.acknowledging import (
    Acknowledging,
    Admission,
    Batches,
    Results,
    batches_in,
    denial,
    has_batches,
)
from broker.server.share.led_share_partition import LedSharePartition, LedState
from broker.server.share.log_slice import NO_RECORDS
from broker.server.share.share_partitions import SharePartitions
from broker.share.acquisition import Demand
from broker.share.session import FINAL_EPOCH, FIRST_EPOCH, PartitionKey, SessionKey, ShareSession
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.share_fetch import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)


class ParkedShareFetch(ParkedFetch):
    """One waiting fetch of a member; `led` are the share-partitions that it may read."""

    __slots__ = ("_led",)

    def __init__(
        self,
        parked: ParkedFetches,
        led: Collection[LedSharePartition],
        min_bytes: int,
        *,
        is_read_committed: bool,
    ) -> None:
        super().__init__(
            parked,
            [*(each.partition for each in led), *led],
            min_bytes,
            is_read_committed=is_read_committed,
            is_patient=min_bytes > 1,
        )
        self._led = led

    def awake(self, *, is_final: bool) -> None:
        """Continue the handler if it has to answer, or if there is something to read."""
        if is_final or any(led.state is LedState.ENDED or led.has_records() for led in self._led):
            super().awake(is_final=is_final)


BATCH_OPTIMIZED, RECORD_LIMIT = 0, 1
ACQUIRE_MODES = frozenset({BATCH_OPTIMIZED, RECORD_LIMIT})
FIRST_VERSION_WITH_RENEWALS = 2


class ShareFetch:
    """Takes acknowledgements and reads records, or waits for records."""

    def __init__(
        self,
        config: BrokerConfig,
        shares: SharePartitions,
        parked_share_fetches: ParkedFetches,
        share_admission: Admission,
        metrics: Metrics,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._max_fetch_bytes = config.max_fetch_bytes
        self._shares = shares
        self._parked_fetches = parked_share_fetches
        self._admission = share_admission
        self._metrics = metrics
        self._loop = loop

    def handle(self, context: RequestContext, request: ShareFetchRequest) -> Steps[Answer]:
        """Answer when the acknowledgements are stored, and there are records or no time left."""
        member = self._admission.member_of(request)
        renews = context.api_version >= FIRST_VERSION_WITH_RENEWALS and request.is_renew_ack
        if renews:
            _validate_renewal(request)
        if request.share_acquire_mode not in ACQUIRE_MODES:
            mode = request.share_acquire_mode
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown share acquire mode id: {mode}"
            )
        batches = batches_in(request.topics)
        try:
            session = self._session_of(context, request, member, batches)
        except KafkaError as error:
            if error.code is not ErrorCode.SHARE_SESSION_LIMIT_REACHED:
                raise
            # Otherwise a client would ask again at once, and for ever.
            yield self._pause(request.max_wait_ms)
            raise
        denied = self._admission.denied(context, chain(session.partitions, batches))
        acknowledged = {key: found for key, found in batches.items() if found}
        acknowledging = Acknowledging(self._shares, member, acknowledged, may_renew=renews)
        yield from acknowledging.begin(denied)
        read = ShareRead(self._shares, member.group_id, self._wanted(request, member))
        is_last = request.share_session_epoch == FINAL_EPOCH
        if not is_last and not renews and request.max_records > 0 and request.max_bytes > 0:
            yield from self._fetch(request, session, read, denied)
        results = yield from acknowledging.results()
        response = self._answer(context, request, session, read, results)
        if is_last:
            self._shares.close(session)
        return response

    def _pause(self, wait_ms: int) -> Later:
        pause = Later()
        self._loop.call_later(max(0, wait_ms) / 1000, pause.done)
        return pause

    # --- the session ---

    def _session_of(
        self,
        context: RequestContext,
        request: ShareFetchRequest,
        member: SessionKey,
        batches: Batches,
    ) -> ShareSession:
        """Open or continue the session; raises KafkaError."""
        sessions, epoch = self._shares.sessions, request.share_session_epoch
        if epoch == FIRST_EPOCH:
            if has_batches(batches):
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    "The first request of a session acknowledges nothing.",
                )
            return sessions.open(member, list(batches), context.connection)
        session = sessions.resume(member, epoch)
        if epoch != FINAL_EPOCH:
            forgotten = (
                (topic.topic_id, partition)
                for topic in request.forgotten_topics_data
                for partition in topic.partitions
            )
            sessions.update(session, list(batches), forgotten)
        return session

    # --- acquire ---

    def _wanted(self, request: ShareFetchRequest, member: SessionKey) -> Wanted:
        max_bytes = min(self._max_fetch_bytes, request.max_bytes)
        return Wanted(
            Demand(
                member.member_id,
                request.max_records,
                request.batch_size,
                is_record_limit=request.share_acquire_mode == RECORD_LIMIT,
            ),
            max_bytes=max_bytes,
            min_bytes=min(request.min_bytes, max_bytes),
        )

    def _fetch(
        self,
        request: ShareFetchRequest,
        session: ShareSession,
        read: ShareRead,
        denied: frozenset[bytes],
    ) -> Steps[None]:
        """Acquire records; wait for them, if there are too few bytes and time is left."""
        began_ms = self._shares.now_ms()
        keys = session.rotated(request.share_session_epoch)
        if denied:
            for key in keys:
                if key[0] in denied:
                    read.refuse(key, denial())
            keys = [key for key in keys if key[0] not in denied]
        yield from read.open(keys)
        yield from self._wait_for_records(request, read)
        self._shares.metrics.note_acquired(
            session.key.group_id,
            100 * read.acquired_count / max(1, len(keys)),
            self._shares.now_ms() - began_ms,
        )

    def _wait_for_records(self, request: ShareFetchRequest, read: ShareRead) -> Steps[None]:
        has_time = request.max_wait_ms > 0
        if read.run(is_final=not has_time) or not has_time:
            return
        parked = ParkedShareFetch(
            self._parked_fetches,
            list(read.led.values()),
            request.min_bytes,
            is_read_committed=read.reads_committed,
        )
        self._parked_fetches.park(parked, request.max_wait_ms)
        while True:
            is_final: bool = yield parked
            if read.run(is_final=is_final) or is_final:
                self._shares.metrics.expired_fetch_count += is_final
                parked.end()
                return
            parked.wait_on()

    # --- the answer ---

    def _answer(
        self,
        context: RequestContext,
        request: ShareFetchRequest,
        session: ShareSession,
        read: ShareRead,
        results: Results,
    ) -> ShareFetchResponse:
        traffic = self._metrics.traffic
        for (topic_id, _), answer in read.answers.items():
            if answer.records:
                traffic[topic_id].bytes_out += len(answer.records)
        is_first = request.share_session_epoch == FIRST_EPOCH
        answers = read.answers
        if is_first:
            for key in session.partitions:
                answers.setdefault(key, _nothing(key))
        named = {
            key: answer
            for key, answer in answers.items()
            if session.note_answer(
                key, has_records=bool(answer.records), has_error=bool(answer.error_code)
            )
            or is_first
        }
        for key, error in results.items():
            answer = named.setdefault(
                key, PartitionData(partition_index=key[1], records=NO_RECORDS)
            )
            if error is not None:
                answer.acknowledge_error_code = error.code
                answer.acknowledge_error_message = error.message
        settings = self._shares.settings_of(session.key.group_id)
        response = ShareFetchResponse(
            acquisition_lock_timeout_ms=settings.policy.record_lock_duration_ms,
            responses=_by_topic(named.items()),
        )
        misdirected = [
            (key, answer)
            for key, answer in named.items()
            if not SAYS_WHO_LEADS.isdisjoint((answer.error_code, answer.acknowledge_error_code))
        ]
        listener_name = context.connection.peer.listener_name
        for address in tell_leaders(
            self._admission.metadata, listener_name, misdirected, LeaderIdAndEpoch
        ):
            response.node_endpoints.append(NodeEndpoint(**address._asdict()))
        return response


def _validate_renewal(request: ShareFetchRequest) -> None:
    """Raise INVALID_REQUEST unless a request that renews locks asks for no records."""
    limits = {
        "maxBytes": request.max_bytes,
        "minBytes": request.min_bytes,
        "maxRecords": request.max_records,
        "maxWaitMs": request.max_wait_ms,
    }
    wrong = [f"{name} must be set to 0, " for name, value in limits.items() if value]
    if wrong:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "".join(wrong) + "if isRenewAck is true.")


def _nothing(key: PartitionKey) -> PartitionData:
    return PartitionData(partition_index=key[1], records=NO_RECORDS)


def _by_topic(
    answers: Iterable[tuple[PartitionKey, PartitionData]],
) -> list[ShareFetchableTopicResponse]:
    topics: dict[bytes, ShareFetchableTopicResponse] = {}
    for (topic_id, _), answer in answers:
        if topic_id not in topics:
            topics[topic_id] = ShareFetchableTopicResponse(topic_id=topic_id)
        topics[topic_id].partitions.append(answer)
    return list(topics.values())
