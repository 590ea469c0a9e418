"""`millstream acls`: list, add and remove access rules, with the flags of kafka-acls."""

import argparse
import sys
from collections.abc import Iterable
from typing import NamedTuple

from broker.cli.arguments import ToolFailed, add_connection, connection_of, tool, tool_parser
from broker.security.principal import parse_principal
from common.kafka.acls import (
    CLUSTER_NAME,
    WILDCARD,
    Acl,
    AclFilter,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)
from common.kafka.admin.acls import create_acls, delete_acls, describe_acls
from common.kafka.admin.client import AdminClient

ACTIONS = ("add", "remove", "list")
RESOURCES = {
    "topic": (ResourceType.TOPIC, "a topic; '*' is every topic"),
    "group": (ResourceType.GROUP, "a group; '*' is every group"),
    "transactional-id": (ResourceType.TRANSACTIONAL_ID, "a transactional id; '*' is every one"),
    "delegation-token": (ResourceType.DELEGATION_TOKEN, "a delegation token"),
    "user-principal": (ResourceType.USER, "a user, as the resource of token operations"),
}
_TOKEN_OPERATIONS = {AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS, AclOperation.ALL}
SUPPORTED: dict[int, set[AclOperation]] = {
    ResourceType.TOPIC: {
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DESCRIBE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.ALL,
    },
    ResourceType.GROUP: {
        AclOperation.READ,
        AclOperation.DESCRIBE,
        AclOperation.DELETE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.ALL,
    },
    ResourceType.CLUSTER: {
        AclOperation.CREATE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.ALL,
    },
    ResourceType.TRANSACTIONAL_ID: {
        AclOperation.DESCRIBE,
        AclOperation.WRITE,
        AclOperation.TWO_PHASE_COMMIT,
        AclOperation.ALL,
    },
    ResourceType.DELEGATION_TOKEN: {AclOperation.DESCRIBE, AclOperation.ALL},
    ResourceType.USER: _TOKEN_OPERATIONS,
}
"""The operations that make sense on each kind of resource, as Kafka's AclEntry has them."""
OPERATION_NAMES = {
    each.name.replace("_", "").lower(): each
    for each in AclOperation
    if each not in {AclOperation.UNKNOWN, AclOperation.ANY}
}

Entry = tuple[str, str, int, int]
"""Principal, host, operation and permission."""


class Options(NamedTuple):
    """One action, with the rules or filters that it is about, by resource."""

    action: str
    entries: dict[ResourcePattern, list[Entry]]
    """Without entries a filter matches every rule of its resource."""
    principals: list[str]
    is_forced: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the tool."""
    for action in ACTIONS:
        parser.add_argument(f"--{action}", action="store_true", help=f"{action} rules")
    resources = parser.add_argument_group("resources")
    resources.add_argument("--cluster", action="store_true", help="the cluster")
    for flag, (_, text) in RESOURCES.items():
        resources.add_argument(f"--{flag}", action="append", default=[], help=text)
    resources.add_argument(
        "--resource-pattern-type",
        default="literal",
        metavar="ANY|MATCH|LITERAL|PREFIXED",
        help="how names are compared; any and match only to list and remove",
    )
    who = parser.add_argument_group("principals")
    for word in ("allow", "deny"):
        who.add_argument(
            f"--{word}-principal", action="append", default=[], metavar="TYPE:NAME", help=word
        )
        who.add_argument(
            f"--{word}-host", action="append", default=[], metavar="ADDRESS", help="'*' by default"
        )
    who.add_argument(
        "--principal", action="append", default=[], metavar="TYPE:NAME", help="whose rules to list"
    )
    what = parser.add_argument_group("operations")
    what.add_argument(
        "--operation", action="append", default=[], metavar="NAME", help="Read, Write, ...; or All"
    )
    what.add_argument(
        "--producer", action="store_true", help="WRITE, DESCRIBE and CREATE on the topic"
    )
    what.add_argument(
        "--idempotent", action="store_true", help="with --producer: IDEMPOTENT_WRITE too"
    )
    what.add_argument(
        "--consumer", action="store_true", help="READ and DESCRIBE on the topic, READ on the group"
    )
    parser.add_argument("--force", action="store_true", help="ask no questions")


def read_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Options:
    """Put the arguments together; ends the tool, or raises ToolFailed, if they cannot be."""
    actions = [action for action in ACTIONS if getattr(options, action)]
    if len(actions) != 1:
        parser.error("Command must include exactly one action: --list, --add, --remove. ")
    (action,) = actions
    patterns = _patterns(parser, options, is_specific=action == "add")
    if action == "list":
        return Options(action, {pattern: [] for pattern in patterns}, options.principal, False)
    if options.producer or options.consumer:
        entries = _of_role(parser, options, patterns)
    else:
        entries = {pattern: _entries(options, pattern) for pattern in patterns}
    if not entries:
        parser.error(
            "You must specify at least one resource: --topic <topic> or --cluster or "
            "--group <group> or --delegation-token <Delegation Token ID>"
        )
    if action == "add" and not any(entries.values()):
        parser.error(
            "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs."
        )
    _check_operations(parser, entries)
    return Options(action, entries, [], options.force)


def _patterns(
    parser: argparse.ArgumentParser, options: argparse.Namespace, *, is_specific: bool
) -> list[ResourcePattern]:
    try:
        pattern_type = PatternType[options.resource_pattern_type.upper()]
    except KeyError:
        pattern_type = PatternType.UNKNOWN
    allowed = {PatternType.LITERAL, PatternType.PREFIXED}
    if not is_specific:
        allowed |= {PatternType.ANY, PatternType.MATCH}
    if pattern_type not in allowed:
        parser.error(
            f"A '--resource-pattern-type' value of '{options.resource_pattern_type}' is not valid."
        )
    patterns = [
        ResourcePattern(kind, name.strip(), pattern_type)
        for flag, (kind, _) in RESOURCES.items()
        for name in getattr(options, flag.replace("-", "_"))
    ]
    if options.cluster or options.idempotent:
        patterns.append(ResourcePattern(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL))
    return patterns


def _entries(options: argparse.Namespace, pattern: ResourcePattern) -> list[Entry]:
    operations = [_operation(name) for name in options.operation] or [AclOperation.ALL]
    return _for_principals(options, operations)


def _for_principals(options: argparse.Namespace, operations: list[AclOperation]) -> list[Entry]:
    entries: list[Entry] = []
    for word, permission in (("allow", PermissionType.ALLOW), ("deny", PermissionType.DENY)):
        for principal in getattr(options, f"{word}_principal"):
            _check_principal(principal)
            for host in getattr(options, f"{word}_host") or [WILDCARD]:
                entries += [(principal, host, each, permission) for each in operations]
    return entries


def _check_principal(principal: str) -> None:
    try:
        parse_principal(principal)
    except ValueError:
        raise ToolFailed(
            "expected a string in format principalType:principalName but got " + principal
        ) from None


def _operation(name: str) -> AclOperation:
    operation = OPERATION_NAMES.get(name.replace("_", "").lower())
    if operation is None:
        raise ToolFailed(f"No operation is called {name}; there are {', '.join(OPERATION_NAMES)}")
    return operation


def _of_role(
    parser: argparse.ArgumentParser, options: argparse.Namespace, patterns: list[ResourcePattern]
) -> dict[ResourcePattern, list[Entry]]:
    """Return the rules that a producer, or a consumer, or both need."""
    for flag in ("operation", "deny_principal", "deny_host"):
        if getattr(options, flag):
            role = "producer" if options.producer else "consumer"
            parser.error(
                f'Option "[{role}]" can\'t be used with option "[{flag.replace("_", "-")}]"'
            )
    if not options.topic:
        parser.error("With --producer or --consumer you must specify a --topic")
    if options.idempotent and not options.producer:
        parser.error("The --idempotent option is only available if --producer is set")
    if options.consumer and not options.group:
        parser.error("With --consumer you must specify a --group")
    wanted: dict[int, dict[AclOperation, None]] = {}
    if options.producer:
        topic = (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE)
        wanted[ResourceType.TOPIC] = dict.fromkeys(topic)
        ids = (AclOperation.WRITE, AclOperation.DESCRIBE)
        wanted[ResourceType.TRANSACTIONAL_ID] = dict.fromkeys(ids)
        wanted[ResourceType.CLUSTER] = dict.fromkeys((AclOperation.IDEMPOTENT_WRITE,))
    if options.consumer:
        topics = wanted.setdefault(ResourceType.TOPIC, {})
        topics.update(dict.fromkeys((AclOperation.READ, AclOperation.DESCRIBE)))
        wanted[ResourceType.GROUP] = dict.fromkeys((AclOperation.READ,))
    return {
        pattern: _for_principals(options, list(wanted[pattern.resource_type]))
        for pattern in patterns
        if pattern.resource_type in wanted
    }


def _check_operations(
    parser: argparse.ArgumentParser, entries: dict[ResourcePattern, list[Entry]]
) -> None:
    for pattern, its_entries in entries.items():
        supported = SUPPORTED[pattern.resource_type]
        if any(operation not in supported for _, _, operation, _ in its_entries):
            kind = ResourceType(pattern.resource_type).name
            listed = ", ".join(each.name for each in AclOperation if each in supported)
            parser.error(f"ResourceType {kind} only supports operations [{listed}]")


DESCRIPTION = (
    "List, add and remove access rules. A rule allows or denies a principal an operation on a "
    "resource; deny beats allow. Rules need authorizer.class.name in the brokers' settings."
)


@tool("Error while executing ACL command: ")
def main(arguments: list[str]) -> int:
    """Carry out one action; 1 when it is refused."""
    parser = tool_parser("acls", DESCRIPTION)
    add_connection(parser)
    add_arguments(parser)
    options = parser.parse_args(arguments)
    chosen = read_options(parser, options)
    with AdminClient(connection_of(options)) as client:
        run = {"add": _add, "remove": _remove, "list": _list}[chosen.action]
        run(client, chosen)
    return 0


def _add(client: AdminClient, options: Options) -> None:
    rules = {
        pattern: [Acl(pattern, *entry) for entry in entries]
        for pattern, entries in options.entries.items()
    }
    for pattern, acls in rules.items():
        print(heading("Adding", pattern))
        print(entry_lines(acls))
    create_acls(client, [acl for acls in rules.values() for acl in acls])


def _remove(client: AdminClient, options: Options) -> None:
    filters = []
    for pattern, entries in options.entries.items():
        question = "Are you sure you want to remove ACLs"
        if entries:
            acls = [Acl(pattern, *entry) for entry in entries]
            asked = f"{question}: \n {entry_lines(acls)} from resource filter `{pattern}`? (y/n)"
            filters += [
                AclFilter(
                    resource_type=pattern.resource_type,
                    resource_name=pattern.name,
                    pattern_type=pattern.pattern_type,
                    principal=principal,
                    host=host,
                    operation=operation,
                    permission_type=permission,
                )
                for principal, host, operation, permission in entries
            ]
        else:
            asked = (
                f"Are you sure you want to delete all ACLs for resource filter `{pattern}`? (y/n)"
            )
            filters.append(_filter_of(pattern))
        if not (options.is_forced or _is_confirmed(asked)):
            return
    delete_acls(client, filters)


def _is_confirmed(question: str) -> bool:
    print(question, flush=True)
    return sys.stdin.readline().strip().lower() == "y"


def _list(client: AdminClient, options: Options) -> None:
    wanted = [_filter_of(pattern) for pattern in options.entries] or [AclFilter()]
    found = [acl for each in wanted for acl in describe_acls(client, each)]
    for principal in options.principals:
        print(f"ACLs for principal `{principal}`")
        print_acls(acl for acl in found if acl.principal == principal)
    if not options.principals:
        print_acls(found)


def _filter_of(pattern: ResourcePattern) -> AclFilter:
    return AclFilter(
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
    )


def print_acls(acls: Iterable[Acl]) -> None:
    """Print rules below the resources that they are about."""
    by_pattern: dict[ResourcePattern, list[Acl]] = {}
    for acl in acls:
        by_pattern.setdefault(acl.pattern, []).append(acl)
    for pattern, its_acls in sorted(by_pattern.items()):
        print(heading("Current", pattern).rstrip())
        print(entry_lines(its_acls).removeprefix(" "))


def heading(what: str, pattern: ResourcePattern) -> str:
    """Return the line above the rules of one resource."""
    return (
        f"{what} ACLs for resource `ResourcePattern("
        f"resourceType={ResourceType(pattern.resource_type).name}, name={pattern.name}, "
        f"patternType={PatternType(pattern.pattern_type).name})`: "
    )


def entry_lines(acls: Iterable[Acl]) -> str:
    """Return the lines about rules of one resource, in the order of their operations."""
    lines = [
        f"\t(principal={acl.principal}, host={acl.host}, "
        f"operation={AclOperation(acl.operation).name}, "
        f"permissionType={PermissionType(acl.permission_type).name})"
        for acl in sorted(acls)
    ]
    return " " + "\n".join(lines) + "\n"
