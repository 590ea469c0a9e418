"""Streams groups: membership and descriptions (KIP-1071)."""

from typing import Any

from broker.security.acls import AclOperation
from broker.server.authorization.access import GROUP, TOPIC, Access, refusal_of
from broker.server.authorization.groups import (
    hiding_topics,
    of_description,
)
from broker.server.authorization.verdicts import Verdict, with_code
from common.kafka.protocol.messages.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeResponse,
)
from common.kafka.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)


def check_streams_group_heartbeat(
    access: Access, request: StreamsGroupHeartbeatRequest, api_version: int
) -> Verdict:
    """READ on the group, DESCRIBE on each topic of a topology that is sent.

    The handler checks CREATE for the internal topics that are missing.
    """
    if not access.may(AclOperation.READ, GROUP, request.group_id):
        return with_code(StreamsGroupHeartbeatResponse, refusal_of(GROUP, request.group_id))
    if request.topology is not None:
        for name in sorted(topics_of(request.topology)):
            if not access.may(AclOperation.DESCRIBE, TOPIC, name):
                return with_code(StreamsGroupHeartbeatResponse, refusal_of(TOPIC, name))
    return None


def topics_of(topology: Any) -> set[str]:
    """Return all topics that a topology names; it is that of a heartbeat or of a description."""
    return {
        name
        for each in topology.subtopologies or ()
        for name in (
            *each.source_topics,
            *each.repartition_sink_topics,
            *(topic.name for topic in each.repartition_source_topics),
            *(topic.name for topic in each.state_changelog_topics),
        )
    }


check_streams_group_describe = hiding_topics(
    of_description("group_ids", StreamsGroupDescribeResponse, DescribedGroup),
    DescribedGroup,
    lambda group: set() if group.topology is None else topics_of(group.topology),
)
