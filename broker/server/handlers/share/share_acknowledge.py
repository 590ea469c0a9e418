"""ShareAcknowledge (key 79), versions 1-2: acknowledge records of a share session (KIP-932).

Epoch -1 closes the session, after the acknowledgements: the records that the member still has are
available again. v2 adds the renewal of locks (KIP-1222).
"""

from broker.server.cluster.cluster_view import SAYS_WHO_LEADS, tell_leaders
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from broker.server.share.acknowledging import Acknowledging, Admission, Results, batches_in
from broker.server.share.share_partitions import SharePartitions
from broker.share.session import FINAL_EPOCH, PartitionKey
from common.kafka.protocol.messages.share_acknowledge import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)

FIRST_VERSION_WITH_RENEWALS = 2


class ShareAcknowledge:
    """Answers when the share coordinator has stored the acknowledgements."""

    def __init__(self, shares: SharePartitions, share_admission: Admission) -> None:
        self._shares = shares
        self._admission = share_admission

    def handle(self, context: RequestContext, request: ShareAcknowledgeRequest) -> Steps[Answer]:
        """Answer when the acknowledgements are stored."""
        member = self._admission.member_of(request)
        session = self._shares.sessions.resume(member, request.share_session_epoch)
        renews = context.api_version >= FIRST_VERSION_WITH_RENEWALS and request.is_renew_ack
        batches = batches_in(request.topics)
        acknowledging = Acknowledging(self._shares, member, batches, may_renew=renews)
        yield from acknowledging.begin(self._admission.denied(context, batches))
        results = yield from acknowledging.results()
        if request.share_session_epoch == FINAL_EPOCH:
            self._shares.close(session)
        return self._answer(context, member.group_id, results)

    def _answer(
        self, context: RequestContext, group_id: str, results: Results
    ) -> ShareAcknowledgeResponse:
        topics: dict[bytes, ShareAcknowledgeTopicResponse] = {}
        misdirected: list[tuple[PartitionKey, PartitionData]] = []
        for key, error in results.items():
            topic_id, number = key
            answer = PartitionData(partition_index=number)
            if error is not None:
                answer.error_code, answer.error_message = error.code, error.message
                if error.code in SAYS_WHO_LEADS:
                    misdirected.append((key, answer))
            if topic_id not in topics:
                topics[topic_id] = ShareAcknowledgeTopicResponse(topic_id=topic_id)
            topics[topic_id].partitions.append(answer)
        listener_name = context.connection.peer.listener_name
        addresses = tell_leaders(
            self._admission.metadata, listener_name, misdirected, LeaderIdAndEpoch
        )
        settings = self._shares.settings_of(group_id)
        return ShareAcknowledgeResponse(
            acquisition_lock_timeout_ms=settings.policy.record_lock_duration_ms,
            responses=list(topics.values()),
            node_endpoints=[NodeEndpoint(**address._asdict()) for address in addresses],
        )
