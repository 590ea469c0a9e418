"""StreamsGroupHeartbeat (key 88), version 0: join, stay, be assigned, leave (KIP-1071).

Epoch 0 joins, -1 leaves; any other epoch confirms the member's epoch. The first member brings the
topology, which never changes. What Apache Kafka 4.3 does not have is refused as it refuses it:
static members, task offsets, warm-up tasks, patterns for source topics, changes of the topology.

A heartbeat is handled in this order: check the request, find the member, configure the topology on
the cluster's topics, write the member, compute targets if due (`targets`), reconcile the member
(`reconciliation`), answer. All refusals come before the first record is written.
"""

from typing import NamedTuple

from broker.coordinator.classic_group.classic_group import ClassicGroup, GroupState
from broker.coordinator.consumer_group.heartbeat import fenced, too_large
from broker.coordinator.consumer_group.migration import dissolve
from broker.coordinator.group_state.config import SETTLING_MS, fits_record, soon_ms
from broker.coordinator.group_state.modern_group import is_early
from broker.coordinator.group_state.step import Step
from broker.coordinator.output import ShardContext, Token
from broker.coordinator.streams_group import departures
from broker.coordinator.streams_group.configured_topology import (
    ConfiguredTopology,
    InternalTopic,
    StatusCode,
)
from broker.coordinator.streams_group.endpoints import partitions_by_endpoint
from broker.coordinator.streams_group.member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    Held,
    HeldTasks,
    MemberMetadata,
    MemberState,
    StreamsMember,
    same_tasks,
)
from broker.coordinator.streams_group.reconciliation import (
    NOTHING_REPORTED,
    Reported,
    reconcile,
)
from broker.coordinator.streams_group.records import Current, GroupTopology, Member
from broker.coordinator.streams_group.replay import write
from broker.coordinator.streams_group.streams_group import StreamsGroup, tasks_in
from broker.coordinator.streams_group.targets import (
    NO_TARGET,
    configured_for,
    delay_first,
    maybe_assign,
    refresh,
)
from broker.coordinator.streams_group.topology import (
    StreamsTopology,
    topology_of,
    validate_topology,
)
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.streams_group_heartbeat import (
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
)


class HeartbeatAnswer(NamedTuple):
    """The answer to a heartbeat, and the internal topics that the caller has to create."""

    response: StreamsGroupHeartbeatResponse
    missing_topics: tuple[InternalTopic, ...] = ()


def streams_group_heartbeat(
    step: Step, token: Token, context: ShardContext, request: StreamsGroupHeartbeatRequest
) -> None:
    """Answer one heartbeat; raise KafkaError, with nothing changed, to refuse it."""
    validate(step, context, request)
    if request.member_epoch == LEAVE_EPOCH:
        step.reply(token, HeartbeatAnswer(departures.leave(step, request)))
        return
    group, replaced = group_of(step, request)
    member = member_of(step, group, request)
    topology = topology_for(group, request)
    configured = configured_for(step, group, topology)
    validate_tasks(configured, request)
    metadata = said(context, request, None if member is None else member.metadata)
    is_new_process = member is not None and changes_process(member, request)
    validate_sizes(step, group, topology, Member(group.group_id, request.member_id, metadata))
    if replaced is not None:
        dissolve(step, replaced)
    step.shard.of(StreamsGroup)[group.group_id] = group
    if not group.members:
        delay_first(step, group)
    if group.topology is None:
        write(step, GroupTopology(group.group_id, topology))
    if member is not None and is_new_process:
        departures.erase(step, group, member)
    before = Held() if member is None else member.current.assigned
    has_changed = member is None or is_new_process or metadata != member.metadata
    if has_changed:
        write(step, Member(group.group_id, request.member_id, metadata))
    refresh(step, group, configured, has_changed=has_changed)
    delay = maybe_assign(step, group)
    member = group.members[request.member_id]
    follow_target(step, group, member, confirmed(member, request))
    departures.restart_session(step, group, member)
    if request.shutdown_application:
        departures.request_shutdown(group, member.member_id)
    step.reply(token, answer(step, group, member, request, before, delay))


def answer(
    step: Step,
    group: StreamsGroup,
    member: StreamsMember,
    request: StreamsGroupHeartbeatRequest,
    before: Held,
    delay: Status | None,
) -> HeartbeatAnswer:
    """Return what has changed for the member."""
    configured = group.configured
    assert configured is not None, group.group_id
    response = StreamsGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=heartbeat_interval_ms(step, group, member, delay),
        status=statuses(group, member, configured, delay),
    )
    assigned = member.current.assigned
    if not same_tasks(before, assigned) or may_lack_tasks(request, member):
        response.active_tasks = task_ids(assigned.active)
        response.standby_tasks = task_ids(assigned.standby)
        response.warmup_tasks = []
        if member.metadata.user_endpoint is not None:
            group.endpoint_epoch += 1
    if group.endpoint_epoch != request.endpoint_information_epoch:
        response.partitions_by_user_endpoint = partitions_by_endpoint(step, group)
    response.endpoint_information_epoch = group.endpoint_epoch
    return HeartbeatAnswer(response, configured.missing)


def may_lack_tasks(request: StreamsGroupHeartbeatRequest, member: StreamsMember) -> bool:
    """Return True if the member may not know its tasks, though they have not changed since.

    It joins, it has missed an epoch, or it reports other tasks: the answer that had its tasks was
    lost. Apache Kafka tells them to a member that joins only, and leaves the others without.
    """
    if request.member_epoch != member.member_epoch:
        return True
    assigned, reported = member.current.assigned, reported_tasks(request)
    return (
        reported.active is not None and reported.active != frozenset(tasks_in(assigned.active))
    ) or (
        reported.standby is not None and reported.standby != frozenset(tasks_in(assigned.standby))
    )


def refuse_heartbeat(refusal: KafkaError) -> HeartbeatAnswer:
    """Build the answer to a refused heartbeat."""
    return HeartbeatAnswer(
        StreamsGroupHeartbeatResponse(
            error_code=refusal.code, error_message=refusal.message or None
        )
    )


# Validation of the request.


def validate(step: Step, context: ShardContext, request: StreamsGroupHeartbeatRequest) -> None:
    """Raise INVALID_REQUEST or the like for a request that is wrong in every state of a group."""
    if not step.are_streams_groups_enabled:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "The streams protocol is not enabled.")
    lists = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    is_joining = request.member_epoch == JOIN_EPOCH
    problems = {
        **_not_built(request),
        "MemberId can't be empty.": not request.member_id,
        "GroupId can't be empty.": not request.group_id,
        "RackId can't be empty.": request.rack_id == "",
        "InstanceId can't be null.": request.member_epoch == STATIC_LEAVE_EPOCH,
        f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2.": (
            request.member_epoch < STATIC_LEAVE_EPOCH
        ),
        "Topology can only be provided when (re-)joining.": (
            not is_joining and request.topology is not None
        ),
    }
    if is_joining:
        problems |= {
            "RebalanceTimeoutMs must be provided in first request.": request.rebalance_timeout_ms
            == -1,
            "ActiveTasks must be empty when (re-)joining.": request.active_tasks != [],
            "StandbyTasks must be empty when (re-)joining.": request.standby_tasks != [],
            "WarmupTasks must be empty when (re-)joining.": request.warmup_tasks != [],
            "Topology must be non-null when (re-)joining.": request.topology is None,
        }
    problems["If one task-type is non-null, all must be non-null."] = (
        any(each is not None for each in lists) and None in lists
    )
    for problem, is_so in problems.items():
        if is_so:
            raise KafkaError(ErrorCode.INVALID_REQUEST, problem)
    if request.topology is not None:
        validate_topology(request.topology)
    validate_words(context, request)


def _not_built(request: StreamsGroupHeartbeatRequest) -> dict[str, bool]:
    """Return the refusals of what Apache Kafka 4.3 has not built either."""
    subtopologies = () if request.topology is None else request.topology.subtopologies
    return {
        "Static membership is not yet supported.": request.instance_id is not None,
        "TaskOffsets are not supported yet.": request.task_offsets is not None,
        "TaskEndOffsets are not supported yet.": request.task_end_offsets is not None,
        "WarmupTasks are not supported yet.": bool(request.warmup_tasks),
        "Regular expressions for source topics are not supported yet.": any(
            each.source_topic_regex for each in subtopologies
        ),
    }


def validate_words(context: ShardContext, request: StreamsGroupHeartbeatRequest) -> None:
    """Raise INVALID_REQUEST for names that are too long for a record."""
    endpoint = request.user_endpoint
    names = (
        request.group_id,
        request.member_id,
        request.rack_id,
        request.process_id,
        None if endpoint is None else endpoint.host,
        context.client_id,
        *(tag.key for tag in request.client_tags or ()),
        *(tag.value for tag in request.client_tags or ()),
    )
    if not all(map(fits_record, names)):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A name is too long.")


def validate_tasks(configured: ConfiguredTopology, request: StreamsGroupHeartbeatRequest) -> None:
    """Raise INVALID_REQUEST for tasks that the topology does not have."""
    if not configured.is_ready:
        return
    for tasks in (*(request.active_tasks or ()), *(request.standby_tasks or ())):
        subtopology = configured.subtopologies.get(tasks.subtopology_id)
        if subtopology is None:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Subtopology {tasks.subtopology_id} does not exist in the topology.",
            )
        count = subtopology.task_count
        for partition in tasks.partitions:
            if not 0 <= partition < count:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"Task {partition} for subtopology {tasks.subtopology_id} is invalid. Number "
                    f"of tasks for this subtopology: {count}",
                )


def validate_sizes(
    step: Step, group: StreamsGroup, topology: StreamsTopology, member: Member
) -> None:
    """Raise `too_large` for a member or a topology that does not fit into a record."""
    if not step.fits(member.encoded()):
        raise too_large()
    if group.topology is None and not step.fits(GroupTopology(group.group_id, topology).encoded()):
        raise too_large()


# The group, the member and the topology of the request.


def group_of(
    step: Step, request: StreamsGroupHeartbeatRequest
) -> tuple[StreamsGroup, ClassicGroup | None]:
    """Return the group, and the empty classic group that it replaces; raise GROUP_ID_NOT_FOUND."""
    group_id = request.group_id
    classic = step.shard.of(ClassicGroup).get(group_id)
    is_new = classic is None or classic.state is GroupState.EMPTY
    is_other = step.shard.has_other_group(group_id, than=step.shard.of(ClassicGroup))
    if request.member_epoch == JOIN_EPOCH and is_new and not is_other:
        return StreamsGroup(group_id), classic
    if classic is None and not is_other:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Streams group {group_id} not found.")
    return step.group(StreamsGroup, group_id), None


def member_of(
    step: Step, group: StreamsGroup, request: StreamsGroupHeartbeatRequest
) -> StreamsMember | None:
    """Return the member that sends the heartbeat, None for a new one; raise KafkaError."""
    if request.member_epoch == JOIN_EPOCH:
        member = group.members.get(request.member_id)
        limit = step.shard.config.streams.max_size
        if member is None and len(group.members) >= limit:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The streams group has reached its maximum capacity of {limit} members.",
            )
        return member
    member = group.member(request.member_id)
    validate_epoch(member, request)
    if changes_process(member, request):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "ProcessId can only be changed when (re-)joining."
        )
    return member


def changes_process(member: StreamsMember, request: StreamsGroupHeartbeatRequest) -> bool:
    """Return True for another process than before, which has none of the member's tasks."""
    return request.process_id not in (None, member.metadata.process_id)


def validate_epoch(member: StreamsMember, request: StreamsGroupHeartbeatRequest) -> None:
    """Raise FENCED_MEMBER_EPOCH for a wrong epoch.

    The previous epoch is valid too, if the member reports only tasks that it has: the answer with
    the new epoch was lost.
    """
    current, reported = member.current, reported_tasks(request)
    if current.state is MemberState.UNKNOWN and not reported.is_empty:
        raise fenced("The streams group member is in a unknown state.")
    if request.member_epoch > current.member_epoch:
        raise fenced(
            f"The streams group member has a greater member epoch ({request.member_epoch}) than "
            f"the one known by the group coordinator ({current.member_epoch})."
        )
    if request.member_epoch == current.member_epoch:
        return
    is_own = _all_in(reported.active, current.assigned.active) and _all_in(
        reported.standby, current.assigned.standby
    )
    if request.member_epoch != current.previous_member_epoch or not is_own:
        raise fenced(
            f"The streams group member has a smaller member epoch ({request.member_epoch}) than "
            f"the one known by the group coordinator ({current.member_epoch})."
        )


def _all_in(reported: object, held: HeldTasks) -> bool:
    return isinstance(reported, frozenset) and all(
        partition in held.get(name, ()) for name, partition in reported
    )


def topology_for(group: StreamsGroup, request: StreamsGroupHeartbeatRequest) -> StreamsTopology:
    """Return the group's topology, or that of the request for a new group.

    A member may join with an older topology: it is told so by a status. Raise INVALID_REQUEST for
    a topology that differs otherwise.
    """
    if request.topology is None:
        assert group.topology is not None, group.group_id
        return group.topology
    sent = topology_of(request.topology)
    if group.topology is None:
        return sent
    if sent.epoch >= group.topology.epoch and sent != group.topology:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
    return group.topology


# The content of the request and of the answer.


def said(
    context: ShardContext, request: StreamsGroupHeartbeatRequest, before: MemberMetadata | None
) -> MemberMetadata:
    """Return what the member says; a field that the request leaves out keeps its value."""
    old = before or MemberMetadata()
    endpoint, tags = request.user_endpoint, request.client_tags
    timeout_ms, topology = request.rebalance_timeout_ms, request.topology
    return MemberMetadata(
        rack_id=old.rack_id if request.rack_id is None else request.rack_id,
        client_id=context.client_id,
        client_host=context.client_host,
        rebalance_timeout_ms=old.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topology_epoch=old.topology_epoch if topology is None else topology.epoch,
        process_id=old.process_id if request.process_id is None else request.process_id,
        user_endpoint=old.user_endpoint if endpoint is None else (endpoint.host, endpoint.port),
        client_tags=old.client_tags
        if tags is None
        else tuple(sorted({tag.key: tag.value for tag in tags}.items())),
    )


def reported_tasks(request: StreamsGroupHeartbeatRequest) -> Reported:
    """Return the tasks that the member reports to have."""
    return Reported(_reported(request.active_tasks), _reported(request.standby_tasks))


def _reported(tasks: list[TaskIds] | None) -> frozenset[tuple[str, int]] | None:
    if tasks is None:
        return None
    return frozenset(
        (each.subtopology_id, partition) for each in tasks for partition in each.partitions
    )


def confirmed(member: StreamsMember, request: StreamsGroupHeartbeatRequest) -> Reported:
    """Return the tasks that the member has in its current epoch; nothing if unknown.

    A heartbeat of the previous epoch may have been sent before the member learnt of tasks that it
    got in this epoch, so a task that is missing in it is not given up.
    """
    if request.member_epoch not in (JOIN_EPOCH, member.member_epoch):
        return NOTHING_REPORTED
    return reported_tasks(request)


def follow_target(
    step: Step, group: StreamsGroup, member: StreamsMember, reported: Reported
) -> None:
    """Reconcile a member with its target, and write the result."""
    following = reconcile(
        member.current,
        group.targets.get(member.member_id, NO_TARGET),
        target_epoch=group.target_epoch,
        reported=reported,
        is_active_free=lambda name, partition: group.is_active_free(member, name, partition),
        is_standby_free=lambda name, partition: group.is_standby_free(member, name, partition),
    )
    if following is not member.current:
        write(step, Current(group.group_id, member.member_id, following))
        departures.watch_revocation(step, group, member)


def statuses(
    group: StreamsGroup,
    member: StreamsMember,
    configured: ConfiguredTopology,
    delay: Status | None,
) -> list[Status]:
    """Return what the member is told beside its tasks."""
    found: list[Status | None] = [_stale(group, member), delay, configured.problem]
    if group.shutdown_member_id:
        detail = (
            f"Streams group member {group.shutdown_member_id} encountered a fatal error and "
            "requested a shutdown for the entire application."
        )
        found.append(Status(status_code=StatusCode.SHUTDOWN_APPLICATION, status_detail=detail))
    return [status for status in found if status is not None]


def _stale(group: StreamsGroup, member: StreamsMember) -> Status | None:
    assert group.topology is not None, group.group_id
    own, epoch = member.metadata.topology_epoch, group.topology.epoch
    if own >= epoch:
        return None
    detail = f"The member's topology epoch {own} is behind the group's topology epoch {epoch}."
    return Status(status_code=StatusCode.STALE_TOPOLOGY, status_detail=detail)


def task_ids(tasks: HeldTasks) -> list[TaskIds]:
    """Return tasks for the answer."""
    return [
        TaskIds(subtopology_id=name, partitions=sorted(partitions))
        for name, partitions in sorted(tasks.items())
    ]


def heartbeat_interval_ms(
    step: Step, group: StreamsGroup, member: StreamsMember, delay: Status | None
) -> int:
    """Return the member's heartbeat interval: short while internal topics are being created too."""
    configured = group.configured
    is_complete = configured is not None and not configured.missing
    has_settled = is_complete and delay is None and group.has_reached_target(member)
    interval_ms = step.streams_config(group.group_id).heartbeat_interval_ms
    if has_settled and not is_early(step, group.assignment_timestamp_ms, SETTLING_MS):
        return interval_ms
    return min(interval_ms, soon_ms(len(group.members)))
