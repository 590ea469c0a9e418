"""`millstream acls`: list, add and remove access rules, with the flags of kafka-acls."""

import sys
from collections.abc import Iterable

from broker.cli.acl_options import Options, add_arguments, read_options
from broker.cli.arguments import add_connection, connection_of, tool, tool_parser
from common.kafka.acls import (
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
