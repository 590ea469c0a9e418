"""The entities of `millstream configs`, from its arguments.

There are two forms: `--entity-type topics --entity-name a`, where types and names are matched by
their order and `--entity-default` stands for a name, and `--topic a`. The empty name is the default
of all entities of a type.
"""

import argparse
import socket
from typing import NamedTuple

from broker.cli.arguments import ToolFailed, is_given

ENTITY_TYPES = (
    "topics", "clients", "users", "brokers", "ips", "broker-loggers", "client-metrics", "groups"
)  # fmt: skip
FLAG_TYPES = {
    "topic": "topics",
    "client": "clients",
    "user": "users",
    "broker": "brokers",
    "broker-logger": "broker-loggers",
    "ip": "ips",
    "client-metrics": "client-metrics",
    "group": "groups",
}
DEFAULT_FLAG_TYPES = {
    "client-defaults": "clients",
    "user-defaults": "users",
    "broker-defaults": "brokers",
    "ip-defaults": "ips",
}
TYPES_WITH_DEFAULT = {"users", "clients", "brokers", "ips"}
TYPES_BY_BROKER_ID = {"brokers", "broker-loggers"}
DEFAULT_NAME = ""


class Entities(NamedTuple):
    """The types in the order of the arguments, with at most as many names."""

    types: list[str]
    names: list[str]


def add_entity_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name entities."""
    parser.add_argument(
        "--entity-type", action="append", default=[], help=f"one of {', '.join(ENTITY_TYPES)}"
    )
    names = parser.add_argument_group("names, in the order of the types")
    names.add_argument(
        "--entity-name", action="append", dest="entity_names", default=[], help="its name"
    )
    names.add_argument(
        "--entity-default",
        action="append_const",
        const=DEFAULT_NAME,
        dest="entity_names",
        help="the default of all entities of the type",
    )
    for flag, entity_type in FLAG_TYPES.items():
        parser.add_argument(f"--{flag}", help=f"the name; the same as --entity-type {entity_type}")
    for flag, entity_type in DEFAULT_FLAG_TYPES.items():
        parser.add_argument(f"--{flag}", action="store_true", help=f"the default of {entity_type}")


def entities_of(options: argparse.Namespace) -> Entities:
    """Return the entities of the arguments; raise ToolFailed for incompatible ones."""
    flags = [flag for flag in FLAG_TYPES if is_given(options, flag)]
    default_flags = [flag for flag in DEFAULT_FLAG_TYPES if is_given(options, flag)]
    types = [
        *options.entity_type,
        *(FLAG_TYPES[flag] for flag in flags),
        *(DEFAULT_FLAG_TYPES[flag] for flag in default_flags),
    ]
    names = [
        *options.entity_names,
        *(getattr(options, flag.replace("-", "_")) for flag in flags),
        *(DEFAULT_NAME for _ in default_flags),
    ]
    _check_types(types)
    if (options.entity_type or options.entity_names) and (flags or default_flags):
        raise ToolFailed(
            "--entity-{type,name,default} should not be used in conjunction with specific entity "
            "flags"
        )
    entities = Entities(types, names)
    _check_names(entities)
    return entities


def check_for_describe(entities: Entities) -> None:
    """Raise an error for entities that cannot be described."""
    listed = ",".join(entities.types)
    if DEFAULT_NAME in entities.names and not TYPES_WITH_DEFAULT & set(entities.types):
        raise ToolFailed(f"--entity-default must not be specified with --describe of {listed}")
    if "broker-loggers" in entities.types and not any(entities.names):
        raise ToolFailed(f"An entity name must be specified with --describe of {listed}")


def check_for_alter(entities: Entities) -> None:
    """Raise an error for entities that cannot be changed."""
    if TYPES_WITH_DEFAULT & set(entities.types):
        if not entities.names:
            raise ToolFailed(
                "An entity-name or default entity must be specified with --alter of users, "
                "clients, brokers or ips"
            )
    elif not any(entities.names):
        listed = ",".join(entities.types)
        raise ToolFailed(f"An entity name must be specified with --alter of {listed}")
    if len(entities.types) != len(entities.names):
        raise ToolFailed("An entity name must be specified for every entity type")


def _check_types(types: list[str]) -> None:
    twice = [name for name in dict.fromkeys(types) if types.count(name) > 1]
    if twice:
        raise ToolFailed(f"Duplicate entity type(s) specified: {','.join(twice)}")
    for name in types:
        if name not in ENTITY_TYPES:
            raise ToolFailed(
                f"Invalid entity type {name}, the entity type must be one of "
                f"{', '.join(ENTITY_TYPES)}"
            )
    if not types:
        raise ToolFailed("At least one entity type must be specified")
    if len(types) > 1 and set(types) != {"users", "clients"}:
        raise ToolFailed("Only 'users' and 'clients' entity types may be specified together")


def _check_names(entities: Entities) -> None:
    for entity_type, name in zip(entities.types, entities.names, strict=False):
        if entity_type in TYPES_BY_BROKER_ID and name and not name.isdecimal():
            raise ToolFailed(
                f"The entity name for {entity_type} must be a valid integer broker id, but it is: "
                f"{name}"
            )
        if entity_type == "ips" and name and not _resolves(name):
            raise ToolFailed(
                f"The entity name for {entity_type} must be a valid IP or resolvable host, but it "
                f"is: {name}"
            )


def _resolves(host: str) -> bool:
    try:
        socket.getaddrinfo(host, None)
    except (OSError, ValueError):
        return False
    return True
