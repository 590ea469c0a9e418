"""CreateAcls and DeleteAcls, as Kafka's AclControlManager decides them (KIP-801)."""

from broker.metadata.control.limits import validate_record_count
from broker.metadata.control.view import ClusterView, Decision, Moment
from broker.metadata.parts.acls import acl_record
from broker.security.principal import parse_principal
from common.kafka.acls import (
    CLUSTER_NAME,
    MAX_HOST_CHARACTERS,
    MAX_NAME_CHARACTERS,
    Acl,
    AclFilter,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from common.kafka.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from common.kafka.protocol.messages.describe_acls import DescribeAclsRequest
from common.kafka.protocol.records.metadata import RemoveAccessControlEntryRecord

RESOURCE_TYPES = frozenset(ResourceType) - {ResourceType.UNKNOWN, ResourceType.ANY}
OPERATIONS = frozenset(AclOperation) - {AclOperation.UNKNOWN, AclOperation.ANY}


def handle_create_acls(
    view: ClusterView, request: CreateAclsRequest, api_version: int, moment: Moment
) -> Decision:
    """Add each rule for itself; one that exists already is a success without a record."""
    known = set(view.image.acls.values())
    records: list[Message] = []
    results = []
    for creation in request.creations:
        result = AclCreationResult(error_message=None)
        try:
            acl = _acl_of(creation)
            _validate(acl)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
        else:
            if acl not in known:
                known.add(acl)
                records.append(acl_record(view.random.randbytes(16), acl))
        results.append(result)
    validate_record_count(len(records))
    return Decision(CreateAclsResponse(results=results), records)


def _acl_of(creation: AclCreation) -> Acl:
    pattern = ResourcePattern(
        creation.resource_type, creation.resource_name, creation.resource_pattern_type
    )
    return Acl(
        pattern, creation.principal, creation.host, creation.operation, creation.permission_type
    )


def _validate(acl: Acl) -> None:
    """Raise INVALID_REQUEST for a rule that cannot be."""
    pattern = acl.pattern
    problem = None
    if pattern.resource_type not in RESOURCE_TYPES:
        problem = f"Invalid resourceType {pattern.resource_type}"
    elif pattern.pattern_type not in {PatternType.LITERAL, PatternType.PREFIXED}:
        problem = f"Invalid patternType {pattern.pattern_type}"
    elif acl.operation not in OPERATIONS:
        problem = f"Invalid operation {acl.operation}"
    elif acl.permission_type not in {PermissionType.DENY, PermissionType.ALLOW}:
        problem = f"Invalid permissionType {acl.permission_type}"
    elif not pattern.name:
        problem = "Resource name should not be empty"
    elif pattern.resource_type == ResourceType.CLUSTER and pattern.name != CLUSTER_NAME:
        problem = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    else:
        problem = _length_problem(acl)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, problem)
    try:
        parse_principal(acl.principal)
    except ValueError as error:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Could not parse principal from `{acl.principal}` (no colon is present separating "
            "the principal type from the principal name)",
        ) from error


def _length_problem(acl: Acl) -> str | None:
    """Return what is too long in a rule."""
    for what, text, longest in (
        ("resource name", acl.pattern.name, MAX_NAME_CHARACTERS[acl.pattern.resource_type]),
        ("principal", acl.principal, MAX_NAME_CHARACTERS[ResourceType.USER]),
        ("host", acl.host, MAX_HOST_CHARACTERS),
    ):
        if len(text) > longest:
            return f"The {what} is longer than {longest} characters"
    return None


def handle_delete_acls(
    view: ClusterView, request: DeleteAclsRequest, api_version: int, moment: Moment
) -> Decision:
    """Delete what each filter matches; a rule that two filters match is deleted once."""
    deleted: set[bytes] = set()
    results = []
    for asked in request.filters:
        result = DeleteAclsFilterResult(error_message=None)
        try:
            wanted = filter_of(asked)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
        else:
            matching = [item for item in view.image.acls.items() if wanted.matches(item[1])]
            deleted.update(acl_id for acl_id, _ in matching)
            result.matching_acls = [_matching(acl) for _, acl in matching]
        results.append(result)
    validate_record_count(len(deleted))
    records: list[Message] = [RemoveAccessControlEntryRecord(id=each) for each in sorted(deleted)]
    return Decision(DeleteAclsResponse(filter_results=results), records)


def filter_of(asked: DeleteAclsFilter | DescribeAclsRequest) -> AclFilter:
    """Read a filter; raises INVALID_REQUEST for one with an unknown number."""
    problem = None
    if asked.resource_type_filter not in {*RESOURCE_TYPES, ResourceType.ANY}:
        problem = f"Unknown resource type {asked.resource_type_filter}"
    elif asked.pattern_type_filter not in frozenset(PatternType) - {PatternType.UNKNOWN}:
        problem = f"Unknown pattern type {asked.pattern_type_filter}"
    elif asked.operation not in {*OPERATIONS, AclOperation.ANY}:
        problem = f"Unknown operation {asked.operation}"
    elif asked.permission_type not in frozenset(PermissionType) - {PermissionType.UNKNOWN}:
        problem = f"Unknown permission type {asked.permission_type}"
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, problem)
    return AclFilter(
        resource_type=asked.resource_type_filter,
        resource_name=asked.resource_name_filter,
        pattern_type=asked.pattern_type_filter,
        principal=asked.principal_filter,
        host=asked.host_filter,
        operation=asked.operation,
        permission_type=asked.permission_type,
    )


def _matching(acl: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=acl.pattern.resource_type,
        resource_name=acl.pattern.name,
        pattern_type=acl.pattern.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )
