"""`millstream configs`: show and change settings and quotas, with the flags of kafka-configs.

Settings belong to topics, brokers, groups and client metrics, quotas to users, clients and IP
addresses, SCRAM credentials to users.
"""

import argparse
import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence

from broker.cli.admin_settings import read_properties
from broker.cli.arguments import ToolFailed, add_connection, connection_of, tool_parser
from broker.cli.config_entities import (
    DEFAULT_NAME,
    TYPES_BY_BROKER_ID,
    Entities,
    add_entity_arguments,
    check_for_alter,
    check_for_describe,
    entities_of,
)
from broker.cli.scram_options import MECHANISMS_BY_NAME, new_credential, parse_credential
from common.kafka.admin.client import AdminClient, raise_for
from common.kafka.admin.configs import (
    ConfigEntry,
    ConfigSource,
    Resource,
    ResourceType,
    alter,
    describe,
    list_resources,
)
from common.kafka.admin.quotas import Quotas, alter_quotas, describe_quotas
from common.kafka.admin.scram import alter_scram, describe_scram
from common.kafka.admin.topics import list_topics
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse

RESOURCE_TYPES = {
    "topics": (ResourceType.TOPIC, ConfigSource.DYNAMIC_TOPIC_CONFIG),
    "brokers": (ResourceType.BROKER, ConfigSource.DYNAMIC_BROKER_CONFIG),
    "broker-loggers": (ResourceType.BROKER_LOGGER, None),
    "client-metrics": (ResourceType.CLIENT_METRICS, ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG),
    "groups": (ResourceType.GROUP, ConfigSource.DYNAMIC_GROUP_CONFIG),
}
QUOTA_TYPES = {"users": "user", "clients": "client-id", "ips": "ip"}
QUOTA_WORDS = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
CLIENT_QUOTAS = {
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
}
IP_QUOTAS = {"connection_creation_rate"}
SECRET_WORDS = ("password", "secret", "jaas", "keystore.key")
"""An argument with one of them is not repeated in an error message."""

# A comma, or an equals sign, that is not inside square brackets.
_comma = re.compile(r",(?=[^\]]*(?:\[|$))")
_equals = re.compile(r"\s*=\s*(?=[^\]]*(?:\[|$))")
_legal_key = re.compile(r"[a-zA-Z0-9._-]*").fullmatch


def main(arguments: list[str]) -> int:
    """Describe or alter; 1 when it is refused."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.describe == options.alter:
        parser.error("Command must include exactly one action: --describe, --alter")
    try:
        entities = _checked(options)
        with AdminClient(connection_of(options)) as client:
            if options.alter:
                _alter(client, entities, options)
            else:
                _describe(client, entities, describe_all=options.all)
    except ToolFailed as error:
        print(error, file=sys.stderr)
        return 1
    except KafkaError as error:
        said = shlex.join(map(_without_secret, arguments))
        print(f"Error while executing config command with args '{said}'", file=sys.stderr)
        print(f"{error.code.name}: {error}", file=sys.stderr)
        return 1
    return 0


def _without_secret(argument: str) -> str:
    """Return an argument as an error message may have it, where others may read it."""
    has_secret = any(word in argument.lower() for word in SECRET_WORDS)
    return "(hidden)" if has_secret else argument


def _parser() -> argparse.ArgumentParser:
    parser = tool_parser(
        "configs",
        "Describe and change the settings of topics, brokers, groups and client metrics, and the "
        "quotas of clients, users and IP addresses.",
    )
    add_connection(parser)
    parser.add_argument("--describe", action="store_true", help="show settings")
    parser.add_argument("--alter", action="store_true", help="change settings")
    parser.add_argument("--all", action="store_true", help="show defaults and the file's too")
    add_entity_arguments(parser)
    parser.add_argument(
        "--add-config",
        metavar="NAME=VALUE,...",
        help="what to set; brackets hold a value with commas: k1=v1,k2=[v2,v3]",
    )
    parser.add_argument(
        "--add-config-file", metavar="FILE", help="a properties file with what to set"
    )
    parser.add_argument("--delete-config", metavar="NAME,...", help="what to remove")
    return parser


def _checked(options: argparse.Namespace) -> Entities:
    is_change = options.add_config or options.add_config_file or options.delete_config
    if options.describe and is_change:
        flag = "add-config" if options.add_config else "delete-config"
        raise ToolFailed(f'Option "[describe]" can\'t be used with option "[{flag}]"')
    entities = entities_of(options)
    if not (options.bootstrap_server or options.bootstrap_controller or options.command_config):
        raise ToolFailed("Either --bootstrap-server or --bootstrap-controller must be specified.")
    if options.describe:
        check_for_describe(entities)
        return entities
    check_for_alter(entities)
    if options.add_config and options.add_config_file:
        raise ToolFailed("Only one of --add-config or --add-config-file must be specified")
    if not is_change:
        raise ToolFailed(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified "
            "with --alter"
        )
    return entities


# Describing.


def _describe(client: AdminClient, entities: Entities, *, describe_all: bool) -> None:
    entity_type = entities.types[0]
    if entity_type in QUOTA_TYPES:
        for quotas in _quotas(client, entities):
            print(quotas_text(quotas))
        if entities.types == ["users"]:
            _describe_scram(client, entities)
        return
    known = _known_names(client, entity_type)
    names = entities.names[:1]
    if names and names[0] != DEFAULT_NAME and names[0] not in known:
        singular = entity_type[:-1] if entity_type != "client-metrics" else "client-metric"
        print(f"The {singular} '{names[0]}' doesn't exist and doesn't have dynamic config.")
        return
    for name in names or [*known, *([DEFAULT_NAME] if entity_type == "brokers" else [])]:
        print(heading(entity_type, name, describe_all=describe_all))
        for entry in _entries(client, entity_type, name, describe_all=describe_all):
            print(entry_text(entry))


def _describe_scram(client: AdminClient, entities: Entities) -> None:
    if DEFAULT_NAME in entities.names:
        return  # The default user has no password.
    for user, credentials in sorted(describe_scram(client, entities.names or None).items()):
        listed = ", ".join(credentials)
        print(f"SCRAM credential configs for user-principal '{user}' are {listed}")


def _known_names(client: AdminClient, entity_type: str) -> list[str]:
    """Give the entities of a type that exist, or have settings although they do not."""
    if entity_type == "topics":
        return [topic.name for topic in list_topics(client)]
    if entity_type in {"brokers", "broker-loggers"}:
        return [str(node_id) for node_id in sorted(client.nodes().nodes)]
    kind, _ = RESOURCE_TYPES[entity_type]
    names = set(list_resources(client, kind))
    if entity_type == "groups":
        for node_id in sorted(client.nodes().nodes):
            response = client.ask(ListGroupsRequest(), ListGroupsResponse, node_id)
            raise_for(response.error_code)
            names.update(group.group_id for group in response.groups)
    return sorted(names)


def _entries(
    client: AdminClient, entity_type: str, name: str, *, describe_all: bool
) -> list[ConfigEntry]:
    kind, source = RESOURCE_TYPES[entity_type]
    if entity_type == "brokers" and name == DEFAULT_NAME:
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    entries = describe(client, Resource(kind, name), with_synonyms=True)
    if source is not None and not describe_all:
        entries = [entry for entry in entries if entry.source == source]
    return sorted(entries, key=lambda entry: entry.name)


def heading(entity_type: str, name: str, *, describe_all: bool) -> str:
    """Give the line above the settings of one entity."""
    if name == DEFAULT_NAME:
        return f"Default configs for {entity_type} in the cluster are:"
    return f"{'All' if describe_all else 'Dynamic'} configs for {entity_type[:-1]} {name} are:"


def entry_text(entry: ConfigEntry) -> str:
    """Give the line about one setting."""
    synonyms = ", ".join(
        f"{source.name}:{name}={_text(value)}" for source, name, value in entry.synonyms
    )
    is_sensitive = str(entry.is_sensitive).lower()
    return f"  {entry.name}={_text(entry.value)} sensitive={is_sensitive} synonyms={{{synonyms}}}"


def _text(value: str | None) -> str:
    return "null" if value is None else value


def _quotas(client: AdminClient, entities: Entities) -> list[Quotas]:
    if len(entities.names) > len(entities.types):
        raise ToolFailed("More entity names specified than entity types")
    kinds = [QUOTA_TYPES[entity_type] for entity_type in entities.types]
    named = dict(zip(kinds, (name or None for name in entities.names), strict=False))
    found = describe_quotas(client, named, kinds[len(named) :])
    return sorted(found, key=lambda quotas: [(k, n or "") for k, n in quotas.entity.items()])


def quotas_text(quotas: Quotas) -> str:
    """Give the line about the quotas of one entity."""
    entity = ", ".join(
        f"the default {word}" if quotas.entity[kind] is None else f"{word} '{quotas.entity[kind]}'"
        for kind, word in QUOTA_WORDS.items()
        if kind in quotas.entity
    )
    values = ", ".join(f"{key}={double_text(value)}" for key, value in quotas.values.items())
    return f"Quota configs for {entity} are {values}"


def double_text(value: float) -> str:
    """Write a number as Java does: 1024.0, and 1.048576E7 from ten million on."""
    if value and not 1e-3 <= abs(value) < 1e7:
        digits, _, exponent = f"{value!r}".partition("e")
        if not exponent:
            digits, _, exponent = f"{value:.17e}".partition("e")
            digits = repr(float(digits))
        digits = digits if "." in digits else f"{digits}.0"
        return f"{digits}E{int(exponent)}"
    return repr(float(value))


# Altering.


def _alter(client: AdminClient, entities: Entities, options: argparse.Namespace) -> None:
    entity_type, name = entities.types[0], entities.names[0]
    if options.add_config_file:
        additions = read_properties(options.add_config_file)
    else:
        additions = parse_additions(options.add_config or "")
    for key in additions:
        if not _legal_key(key):
            raise ToolFailed(f"Invalid character found for config key: {key}")
    deletions = [key.strip() for key in (options.delete_config or "").split(",") if key.strip()]
    if entity_type in QUOTA_TYPES:
        _alter_users_and_clients(client, entities, additions, deletions)
    else:
        kind, _ = RESOURCE_TYPES[entity_type]
        if (
            name
            and entity_type in TYPES_BY_BROKER_ID
            and not client.settings.is_controller_bootstrap
        ):
            client.require_node(int(name))
        check_once(additions, deletions)
        changes: dict[str, str | None] = {**additions, **dict.fromkeys(deletions)}
        alter(client, {Resource(kind, name): changes})
    if name:
        print(f"Completed updating config for {entity_type[:-1]} {name}.")
    else:
        print(f"Completed updating default config for {entity_type} in the cluster.")


def check_once(additions: Mapping[str, str], deletions: Sequence[str]) -> None:
    """Refuse a setting that is to be set and removed at once, as Kafka's broker refuses it."""
    if not additions.keys().isdisjoint(deletions):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")


def parse_additions(text: str) -> dict[str, str]:
    """Parse `k1=v1,k2=[v2,v3]`; raises ToolFailed."""
    additions = {}
    for part in _comma.split(text) if text else ():
        pair = _equals.split(part)
        if len(pair) != 2:
            raise ToolFailed(
                "requirement failed: Invalid entity config: all configs to be added must be in "
                'the format "key=val" or  "key=[val1,val2]" to group values which contain commas.'
            )
        additions[pair[0].strip()] = pair[1].replace("[", "").replace("]", "").strip()
    return additions


def _alter_users_and_clients(
    client: AdminClient, entities: Entities, additions: dict[str, str], deletions: list[str]
) -> None:
    """Change SCRAM credentials and quotas; a command is about one of the two."""
    named = [key for key in (*additions, *deletions) if key in MECHANISMS_BY_NAME]
    if not named or entities.types != ["users"]:
        _alter_quotas(client, entities, additions, deletions)
        return
    (user,) = entities.names
    if user == DEFAULT_NAME:
        raise ToolFailed("The use of --entity-default or --user-defaults is not allowed with SCRAM")
    if len(named) < len(additions) + len(deletions):
        raise ToolFailed("Change SCRAM credentials and quotas in two commands")
    new = [
        new_credential(MECHANISMS_BY_NAME[name], parse_credential(text), os.urandom)
        for name, text in additions.items()
    ]
    alter_scram(client, user, new, [MECHANISMS_BY_NAME[name] for name in deletions])


def _alter_quotas(
    client: AdminClient, entities: Entities, additions: dict[str, str], deletions: list[str]
) -> None:
    is_ip = entities.types == ["ips"]
    allowed = IP_QUOTAS if is_ip else CLIENT_QUOTAS
    _check_names(entities, allowed, additions, "added")
    _check_names(entities, allowed, deletions, "deleted")
    found = _quotas(client, entities)
    current = found[0].values if found else {}
    missing = [key for key in deletions if key not in current]
    if missing:
        raise ToolFailed(f"Invalid config(s): {','.join(missing)}")
    changes: dict[str, float | None] = dict.fromkeys(deletions)
    for key, value in additions.items():
        try:
            changes[key] = float(value)
        except ValueError:
            raise ToolFailed(f"Cannot parse quota configuration value for {key}: {value}") from None
    kinds = [QUOTA_TYPES[entity_type] for entity_type in entities.types]
    names = (name or None for name in entities.names)
    alter_quotas(client, dict(zip(kinds, names, strict=True)), changes)


def _check_names(entities: Entities, allowed: set[str], keys: Iterable[str], done: str) -> None:
    unknown = [key for key in keys if key not in allowed]
    if not unknown:
        return
    listed = ", ".join(unknown)
    if entities.types == ["ips"]:
        raise ToolFailed(
            f"Only connection quota configs can be {done} for 'ips' using --bootstrap-server. "
            f"Unexpected config names: {listed}"
        )
    is_user = entities.types == ["users"]
    what = "quota and SCRAM credential" if is_user else "quota"
    raise ToolFailed(
        f"Only {what} configs can be {done} for '{'users' if is_user else 'clients'}' using "
        f"--bootstrap-server. Unexpected config names: Set({listed})"
    )
