"""Gives principals their rights on a cluster, and tells which rules a cluster has."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
)
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from common.credentials.access import KafkaAccess
from common.kafka.metadata_age import ADMIN_SETTINGS
from common.kafka.rights import Right

_SECONDS = 30
_NO_NAME: Any = None
"""In a filter: every name. The library's types know only texts."""
_EVERYTHING = AclBindingFilter(
    ResourceType.ANY,
    _NO_NAME,
    ResourcePatternType.ANY,
    _NO_NAME,
    _NO_NAME,
    AclOperation.ANY,
    AclPermissionType.ANY,
)
_KINDS = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    # confluent-kafka calls Kafka's resource type CLUSTER so.
    "cluster": ResourceType.BROKER,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def grant(access: KafkaAccess, rights: Mapping[str, tuple[Right, ...]]) -> None:
    """Add the rights of principals such as `User:orders`. Raise KafkaException."""
    wanted = [rule(principal, each) for principal, own in rights.items() for each in own]
    client = _client(access)
    for added in client.create_acls(wanted, request_timeout=_SECONDS).values():
        added.result(_SECONDS)


def _client(access: KafkaAccess) -> AdminClient:
    # Its connections end with it; librdkafka would log that as a failure of the brokers.
    quiet: dict[str, Any] = {"log_level": 2, "log.connection.close": "false"}
    return AdminClient({**ADMIN_SETTINGS, **access.librdkafka(), **quiet})


def rule(principal: str, right: Right) -> AclBinding:
    """Return a right as a rule of Kafka."""
    return AclBinding(
        _KINDS[right.kind],
        right.name,
        ResourcePatternType.PREFIXED if right.is_prefix else ResourcePatternType.LITERAL,
        principal,
        "*",
        AclOperation[right.operation],
        AclPermissionType.ALLOW,
    )


def rules(access: KafkaAccess) -> list[tuple[str, str]]:
    """Return every rule of a cluster as principal and text, sorted. Raise KafkaException."""
    client = _client(access)
    found = client.describe_acls(_EVERYTHING, request_timeout=_SECONDS).result(_SECONDS)
    by_resource: dict[tuple[str, str, str], list[str]] = {}
    for each in found:
        place = (each.principal, each.permission_type.name, _resource(each))
        by_resource.setdefault(place, []).append(each.operation.name)
    return sorted(
        (principal, f"{permission} {', '.join(sorted(operations))} on {resource}")
        for (principal, permission, resource), operations in by_resource.items()
    )


def _resource(binding: Any) -> str:
    is_prefix = binding.resource_pattern_type is ResourcePatternType.PREFIXED
    return f"{_NAMES[binding.restype]} {binding.name}{'*' if is_prefix else ''}"
