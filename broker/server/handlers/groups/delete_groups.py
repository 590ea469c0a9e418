"""DeleteGroups (key 42), versions 0-2: delete empty groups and their offsets (KIP-229).

OffsetDelete (key 47), version 0: delete committed offsets (KIP-496). Very many offsets are deleted
in parts (`coordinators.parts`); the refusal of a part is the whole answer, although other parts may
be done.
"""

from functools import partial

from broker.coordinator.share_group.offsets import Plan, begin_to_delete_group
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.coordinators.groups import Groups
from broker.server.coordinators.parts import joined, parts_of
from broker.server.coordinators.share_state_calls import Results, ShareStateCalls, divided
from broker.server.handlers.groups.share_group_offsets import ask
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Later, Steps, all_values, each, happened
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from common.kafka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


class DeleteGroups:
    """Asks each group's shard; before that, the share coordinator to forget the state of one."""

    def __init__(self, groups: Groups, share_state_calls: ShareStateCalls) -> None:
        self._groups = groups
        self._calls = share_state_calls

    def handle(self, context: RequestContext, request: DeleteGroupsRequest) -> Steps[Answer]:
        """Delete each group in its own shard."""
        names = list(dict.fromkeys(request.groups_names))
        questions = yield from each(
            names, lambda name: ask(self._groups, context, begin_to_delete_group, name, name)
        )
        plans = yield from all_values(questions)
        deletions = yield from each(plans, self._forget_state)
        outcomes = yield from all_values(deletions)
        questions = yield from each(
            zip(names, outcomes, strict=True), partial(self._delete, context)
        )
        results = yield from all_values(questions)
        return DeleteGroupsResponse(results=results)

    def _forget_state(self, plan: Plan) -> Later:
        """Return an event with the error that a group cannot be deleted with, or the results."""
        if plan.error_code or not plan.partitions:
            return happened(plan.error_code)
        return self._calls.delete(plan.group_id, plan.partitions)

    def _delete(self, context: RequestContext, group: tuple[str, ErrorCode | Results]) -> Later:
        name, outcome = group
        code: int = ErrorCode.NONE
        if isinstance(outcome, ErrorCode):
            code = outcome
        else:
            _, refused = divided(outcome)
            code = next((each.error_code for each in refused.values()), ErrorCode.NONE)
        if code:
            return happened(DeletableGroupResult(group_id=name, error_code=code))
        return self._ask(context, name)

    def _ask(self, context: RequestContext, group_id: str) -> Later:
        try:
            return self._groups.ask(
                context,
                group_id,
                lambda shard, token, who, now: shard.delete_group(token, who, group_id, now),
            )
        except KafkaError as error:
            return happened(DeletableGroupResult(group_id=group_id, error_code=error.code))


class OffsetDelete:
    """Deletes committed offsets through the groups' shards."""

    def __init__(self, metadata: ClusterMetadata, groups: Groups) -> None:
        self._metadata = metadata
        self._groups = groups

    def handle(self, context: RequestContext, request: OffsetDeleteRequest) -> Steps[Answer]:
        """Delete through the group's shard; partitions that do not exist are answered here."""
        questions: list[Later] = []
        refused: list[list[OffsetDeleteResponseTopic]] = []
        for topics in parts_of(request.topics, _partitions, _cut):
            if questions:
                yield None
            unknown = [self._take_out_unknown(topic) for topic in topics]
            refused.append([topic for topic in unknown if topic.partitions])
            questions.append(self._ask(context, request.group_id, topics))
        answers = []
        for question, unknown in zip(questions, refused, strict=True):
            response: OffsetDeleteResponse = yield question
            if response.error_code:
                return response
            answers += [response.topics, unknown]
        return OffsetDeleteResponse(topics=joined(answers, lambda topic: topic.name))

    def _ask(
        self, context: RequestContext, group_id: str, topics: list[OffsetDeleteRequestTopic]
    ) -> Later:
        known = [topic for topic in topics if topic.partitions]
        part = OffsetDeleteRequest(group_id=group_id, topics=known)
        return self._groups.ask(
            context,
            group_id,
            lambda shard, token, who, now: shard.delete_offsets(token, who, part, now),
        )

    def _take_out_unknown(self, topic: OffsetDeleteRequestTopic) -> OffsetDeleteResponseTopic:
        """Leave in `topic` the partitions that exist, and return the refusal of the others."""
        image = self._metadata.image.topics.by_name.get(topic.name)
        existing = {} if image is None else image.partitions
        unknown = [part for part in topic.partitions if part.partition_index not in existing]
        topic.partitions = [part for part in topic.partitions if part.partition_index in existing]
        return OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=[
                OffsetDeleteResponsePartition(
                    partition_index=partition.partition_index,
                    error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                )
                for partition in unknown
            ],
        )


def _partitions(topic: OffsetDeleteRequestTopic) -> list[OffsetDeleteRequestPartition]:
    return topic.partitions


def _cut(topic: OffsetDeleteRequestTopic, some: slice) -> OffsetDeleteRequestTopic:
    return OffsetDeleteRequestTopic(name=topic.name, partitions=topic.partitions[some])
