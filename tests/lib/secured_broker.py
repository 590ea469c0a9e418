"""A broker with an authorizer, one principal for each program, and what the programs did there."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from broker.__main__ import main as tool
from millrace.security.rights import Right
from millrace.testing import LocalBroker
from millrace.testing.security import USER

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_LINE = re.compile(
    r"(?P<verdict>allowed|denied) principal='User:(?P<user>[^']*)' host=\S+ "
    r"operation=(?P<operation>\w+) resource=(?P<kind>\w+):'(?P<name>[^']*)'"
)
_KINDS = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "cluster": ResourceType.BROKER,
}
IMPLIED = {
    "DESCRIBE": ("READ", "WRITE", "DELETE", "ALTER"),
    "DESCRIBE_CONFIGS": ("ALTER_CONFIGS",),
}
"""What an operation is also allowed by."""


class Decision(NamedTuple):
    """One line of the audit log."""

    is_allowed: bool
    user: str
    operation: str
    kind: str
    name: str

    def is_due_to(self, right: Right) -> bool:
        """Tell whether a right allows it."""
        operations = (self.operation, *IMPLIED.get(self.operation, ()))
        return right.operation in operations and right.covers(self.kind, self.name)


class SecuredBroker:
    """Owns a broker whose audit log has every decision."""

    def __init__(self, users: Iterable[str], **settings: Any) -> None:
        self.broker = LocalBroker(
            security="sasl_ssl",
            users={user: password_of(user) for user in users},
            authorizer_class_name=AUTHORIZER,
            super_users=f"User:{USER}",
            **settings,
        )

    def __enter__(self) -> "SecuredBroker":
        self.broker.start()
        try:
            self.admin = AdminClient(self.broker.client_settings())
            self._log_every_decision()
        except BaseException:
            self.broker.close()
            raise
        return self

    def _log_every_decision(self) -> None:
        (node_id,) = self.admin.list_topics(timeout=30).brokers
        told = [
            *("--bootstrap-server", self.bootstrap_servers),
            *("--command-config", self.broker.client_file(), "--alter"),
            *("--entity-type", "broker-loggers", "--entity-name", str(node_id)),
            *("--add-config", "millrace.authorizer=DEBUG"),
        ]
        assert tool(["configs", *told]) == 0

    def __exit__(self, *_: object) -> None:
        self.broker.close()

    @property
    def bootstrap_servers(self) -> str:
        return self.broker.bootstrap_servers

    def allow(self, user: str, rights: Iterable[Right]) -> None:
        """Add rules. They hold when this returns."""
        _wait(self.admin.create_acls([_binding(user, each) for each in rights]))

    def forbid(self, user: str, right: Right) -> None:
        """Remove one rule."""
        one = _binding(user, right)
        wanted = AclBindingFilter(
            one.restype,
            one.name,
            one.resource_pattern_type,
            one.principal,
            one.host,
            one.operation,
            one.permission_type,
        )
        found = _wait(self.admin.delete_acls([wanted]))
        assert [len(each) for each in found] == [1], right

    def decisions(self) -> Iterator[Decision]:
        """Return what the audit log has of users who are not the administrator."""
        for found in _LINE.finditer(self.broker.log()):
            if found["user"] != USER:
                kind = found["kind"].lower().replace("_", "-")
                is_allowed = found["verdict"] == "allowed"
                yield Decision(is_allowed, found["user"], found["operation"], kind, found["name"])


def password_of(user: str) -> str:
    return f"{user}-secret"


def unneeded(decisions: Iterable[Decision], rights: Iterable[Right]) -> list[Right]:
    """Return the rights without which everything would have been allowed all the same."""
    told = tuple(rights)
    missed = set()
    for each in decisions:
        due = [right for right in told if each.is_due_to(right)]
        if each.is_allowed and len(due) == 1:
            missed.add(due[0])
    return [right for right in told if right not in missed]


def _binding(user: str, right: Right) -> AclBinding:
    return AclBinding(
        _KINDS[right.kind],
        "kafka-cluster" if right.kind == "cluster" else right.name,
        ResourcePatternType.PREFIXED if right.is_prefix else ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        AclOperation[right.operation],
        AclPermissionType.ALLOW,
    )


def _wait(futures: Mapping[Any, Any]) -> list[Any]:
    return [future.result(30) for future in futures.values()]
