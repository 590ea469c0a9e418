"""`millstream storage format | info | random-uuid`: prepare a node's directories (kafka-storage).

Flags, texts and exit statuses are those of Apache Kafka's tool, and so are the files: a directory
that one has formatted is the other's too.
"""

import argparse
import os
import socket
import sys
from pathlib import Path

from broker.cli.arguments import ToolFailed, add_sub_command, plain_tool_parser
from broker.cli.scram_options import MECHANISMS_BY_NAME, new_credential, parse_fields
from broker.config.broker_config import BrokerConfig
from broker.config.listeners import NON_ROUTABLE
from broker.config.sources import collect_settings
from broker.log.checkpoints import encode_uuid
from broker.log.meta_properties import InconsistentLogDirectory
from broker.log.storage import RealStorage
from broker.metadata.features import (
    FEATURES_AT_FORMAT,
    KRAFT_VERSION,
    SUPPORTED_FEATURES,
)
from broker.metadata.parts.scram import scram_record
from broker.server.clock import SystemClock, random_uuid
from broker.server.quorum.formatting import (
    Directories,
    FormatPlan,
    examine,
    format_directory,
    validate_owner,
)
from broker.server.quorum.initial_controllers import (
    InitialController,
    directory_id_of,
    first_voters,
    read_initial_controllers,
)
from common.credentials.scram import credential_from
from common.kafka.errors import KafkaError
from common.kafka.protocol.records.metadata import UserScramCredentialRecord

RELEASE = "4.3-IV0"
RELEASES = frozenset({"4.3", RELEASE})


class Refused(Exception):  # noqa: N818 - what the user is told, not a failure of the tool
    """Why the command is not carried out, in words."""


def main(arguments: list[str]) -> int:
    """Run one sub-command; 1 when it was refused."""
    parsed = _parser().parse_args(arguments)
    try:
        status: int = parsed.run(parsed)
    except (Refused, ToolFailed, KafkaError, InconsistentLogDirectory, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return status


def _parser() -> argparse.ArgumentParser:
    parser = plain_tool_parser("storage", "Prepare the directories of a node.")
    commands = parser.add_subparsers(required=True, metavar="{format,info,random-uuid}")
    _add_format(add_sub_command(commands, "storage", "format", "format the log directories"))
    info = add_sub_command(commands, "storage", "info", "tell what is in the log directories")
    info.set_defaults(run=_info)
    info.add_argument("-c", "--config", type=Path, required=True, help="the configuration file")
    uuid = add_sub_command(
        commands, "storage", "random-uuid", "print a random uuid: an id for a new cluster"
    )
    uuid.set_defaults(run=_random_uuid)
    return parser


def _add_format(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_format)
    parser.add_argument("-c", "--config", type=Path, required=True, help="the configuration file")
    parser.add_argument("-t", "--cluster-id", required=True, help="the cluster id to use")
    parser.add_argument(
        "-g",
        "--ignore-formatted",
        action="store_true",
        help="leave out directories that are formatted already instead of failing",
    )
    parser.add_argument(
        "-r", "--release-version", help=f"the release of the initial features; only {RELEASE}"
    )
    parser.add_argument(
        "-f",
        "--feature",
        action="append",
        default=[],
        metavar="NAME=LEVEL",
        help="the initial level of one feature",
    )
    parser.add_argument(
        "-S",
        "--add-scram",
        action="append",
        default=[],
        metavar="MECHANISM=[name=USER,password=...]",
        help="a SCRAM credential that the new cluster begins with; iterations, salt and "
        "saltedpassword are further parts",
    )
    who = parser.add_mutually_exclusive_group()
    who.add_argument(
        "-s",
        "--standalone",
        action="store_true",
        help="the only controller of a quorum whose voters are in its log",
    )
    who.add_argument(
        "-N",
        "--no-initial-controllers",
        action="store_true",
        help="say nothing of the voters: the bootstrap servers know them",
    )
    who.add_argument(
        "-I",
        "--initial-controllers",
        metavar="ID@HOST:PORT:DIRECTORY,...",
        help="the voters; the same for all nodes",
    )


def _load(path: Path) -> BrokerConfig:
    settings = collect_settings(file=path, environment=os.environ, overrides=())
    return BrokerConfig.from_settings(settings)


def _random_uuid(parsed: argparse.Namespace) -> int:
    print(encode_uuid(random_uuid().bytes))
    return 0


# info


def _info(parsed: argparse.Namespace) -> int:
    found = examine(RealStorage(), _load(parsed.config))
    _print_paths("Found log director", sorted([*found.formatted, *found.unformatted]))
    for properties in list(found.formatted.values())[:1]:
        fields = ", ".join(f"{name}={value}" for name, value in sorted(properties.items()))
        print(f"Found metadata: {{{fields}}}\n")
    problems = [
        *(f"{path} is not formatted." for path in found.unformatted),
        *(f"{path} does not exist" for path in found.missing),
        *_disagreements(found),
    ]
    if problems:
        print("Found problem:" if len(problems) == 1 else "Found problems:")
        print("\n".join(f"  {problem}" for problem in problems) + "\n")
    return 1 if problems else 0


def _print_paths(title: str, paths: list[str]) -> None:
    if paths:
        print(title + ("y:" if len(paths) == 1 else "ies:"))
        print("\n".join(f"  {path}" for path in paths) + "\n")


def _disagreements(found: Directories) -> list[str]:
    first = next(iter(found.formatted.values()), {})
    return [
        f"{path}/meta.properties has {name}={properties.get(name)}, others {first.get(name)}"
        for path, properties in found.formatted.items()
        for name in ("cluster.id", "node.id")
        if properties.get(name) != first.get(name)
    ]


# format


def _format(parsed: argparse.Namespace) -> int:
    config, storage = _load(parsed.config), RealStorage()
    _validate_quorum_flags(parsed, config)
    names_voters = parsed.standalone or parsed.initial_controllers is not None
    is_dynamic = not config.voters and (names_voters or parsed.no_initial_controllers)
    features = _features(parsed.release_version, parsed.feature, is_dynamic=is_dynamic)
    plan = _plan(parsed, config, features)
    found = examine(storage, config)
    if found.formatted and not parsed.ignore_formatted:
        raise Refused(
            f"Log directory {next(iter(found.formatted))} is already formatted. Use "
            "--ignore-formatted to ignore this directory and format the others."
        )
    validate_owner(found, plan.cluster_id, config.node_id)
    wanted = [*found.unformatted, *found.missing]
    if not wanted:
        print("All of the log directories are already formatted.")
    # The metadata directory last: what decides who votes is there once all else is.
    for path in sorted(wanted, key=lambda path: path == config.metadata_log_dir):
        format_directory(
            storage,
            path,
            config,
            plan,
            new_uuid=lambda: random_uuid().bytes,
            timestamp_ms=SystemClock().timestamp_ms(),
        )
        print(f"Formatting {_kind_of(path, config, plan)} {path} with metadata.version {RELEASE}.")
    return 0


def _kind_of(path: str, config: BrokerConfig, plan: FormatPlan) -> str:
    if path != config.metadata_log_dir:
        return "data directory"
    if plan.voters is None:
        return "metadata directory"
    is_voter = config.node_id in [voter.voter_id for voter in plan.voters.voters]
    return "dynamic metadata voter directory" if is_voter else "dynamic metadata directory"


def _validate_quorum_flags(parsed: argparse.Namespace, config: BrokerConfig) -> None:
    """Refuse what does not go together, as Apache Kafka's tool does."""
    names_voters = parsed.standalone or parsed.initial_controllers is not None
    if not parsed.cluster_id.strip() or not parsed.cluster_id.isprintable():
        raise Refused(
            "The cluster id must be a text, such as millstream storage random-uuid prints."
        )
    if names_voters and config.voters:
        raise Refused(
            "You cannot specify controller.quorum.voters and format the node with "
            "--initial-controllers or --standalone. If you want to use dynamic quorum, please "
            "remove controller.quorum.voters and specify controller.quorum.bootstrap.servers "
            "instead."
        )
    if parsed.standalone and not config.is_controller:
        raise Refused("You can only use --standalone on a controller.")
    is_undecided = not names_voters and not parsed.no_initial_controllers
    if config.is_controller and config.bootstrap_servers and not config.voters and is_undecided:
        raise Refused(
            "Because controller.quorum.voters is not set on this controller, you must specify one "
            "of the following: --standalone, --initial-controllers, or --no-initial-controllers."
        )


def _features(release: str | None, given: list[str], *, is_dynamic: bool) -> dict[str, int]:
    """Give the levels of a new cluster: the defaults, changed by what was given."""
    if release is not None and release not in RELEASES:
        raise Refused(
            f"Unknown metadata.version '{release}'. Supported metadata.version are: {RELEASE}"
        )
    features = dict(FEATURES_AT_FORMAT)
    ranges = SUPPORTED_FEATURES
    for text in given:
        name, equals, level_text = text.partition("=")
        if not equals or not level_text.isdecimal():
            raise Refused(f"Can't parse feature=level string {text}: expected feature=level")
        if name not in ranges:
            raise Refused(
                f"Unsupported feature: {name}. Supported features are: {', '.join(sorted(ranges))}"
            )
        lowest, highest = ranges[name]
        if not lowest <= int(level_text) <= highest:
            raise Refused(f"No feature:{name} with feature level {level_text}")
        if name == KRAFT_VERSION:
            _validate_kraft_version(int(level_text), is_dynamic=is_dynamic)
        else:
            features[name] = int(level_text)
    return features


def _validate_kraft_version(level: int, *, is_dynamic: bool) -> None:
    """Refuse a level that the flags contradict: they alone decide it."""
    flags = "--standalone, --initial-controllers, or --no-initial-controllers"
    if level == 0 and is_dynamic:
        raise Refused(
            f"Cannot set {KRAFT_VERSION} to 0 if controller.quorum.voters is empty and one of the "
            f"flags {flags} is used. For dynamic controllers support, try removing the --feature "
            f"flag for {KRAFT_VERSION}."
        )
    if level > 0 and not is_dynamic:
        raise Refused(
            f"Cannot set {KRAFT_VERSION} to {level} unless controller.quorum.voters is empty and "
            f"one of the flags {flags} is used. For dynamic controllers support, try using one of "
            f"{flags} and removing controller.quorum.voters."
        )


def _plan(parsed: argparse.Namespace, config: BrokerConfig, features: dict[str, int]) -> FormatPlan:
    directory_id = random_uuid().bytes
    controllers: tuple[InitialController, ...] = ()
    if parsed.standalone:
        controllers = (_standalone(config, directory_id),)
    elif parsed.initial_controllers is not None:
        controllers = read_initial_controllers(parsed.initial_controllers)
        directory_id = directory_id_of(controllers, config.node_id) or directory_id
    return FormatPlan(
        cluster_id=parsed.cluster_id,
        features=features,
        metadata_directory_id=directory_id,
        voters=first_voters(controllers, config) if controllers else None,
        credentials=tuple(_credential(text) for text in parsed.add_scram),
    )


def _credential(text: str) -> UserScramCredentialRecord:
    name, _, fields_text = text.partition("=")
    mechanism = MECHANISMS_BY_NAME.get(name)
    if mechanism is None:
        raise Refused(f"The add-scram mechanism {name} is not supported.")
    fields = parse_fields(fields_text)
    if not fields.get("name"):
        raise Refused("You must supply 'name' to add-scram")
    new = new_credential(mechanism, fields, os.urandom)
    credential = credential_from(mechanism, new.salted, new.salt, new.iterations)
    return scram_record(fields["name"], mechanism.number, credential)


def _standalone(config: BrokerConfig, directory_id: bytes) -> InitialController:
    if not config.controller_listeners or not config.controller_listeners[0].port:
        raise Refused("--standalone needs a controller listener with a port in `listeners`.")
    listener = config.controller_listeners[0]
    host = socket.gethostname() if listener.host in NON_ROUTABLE else listener.host
    return InitialController(config.node_id, host, listener.port, directory_id)
