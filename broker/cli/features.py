"""`millstream features`: describe and change feature levels, with the flags of kafka-features.

A release of Kafka's metadata version (KIP-584, KIP-1022) such as 4.3-IV0 is a level of
`metadata.version`; every other feature has the level that is the default from that release on.
"""

import argparse
from typing import NamedTuple

from broker.cli.arguments import (
    ToolFailed,
    add_connection,
    add_sub_command,
    connection_of,
    tool,
    tool_parser,
)
from common.kafka.admin.client import AdminClient
from common.kafka.admin.cluster import (
    FeatureLevels,
    UpgradeType,
    describe_features,
    update_features,
)
from common.kafka.errors import KafkaError

METADATA_VERSION = "metadata.version"
LATEST_RELEASE = "4.3-IV0"

# Level 7 is the first: earlier levels cannot be upgraded to a current one.
RELEASES = dict(
    enumerate(
        (
            "3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2",
            "3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0", "4.0-IV0",
            "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0",
        ),
        start=7,
    )
)  # fmt: skip
LEVELS = {release: level for level, release in RELEASES.items()}


class Feature(NamedTuple):
    """One feature besides the metadata version."""

    name: str
    max_level: int
    default_from: str  # the release from which on `max_level` is its default; before, it is 0
    requires: dict[int, dict[str, int]]  # by its level, which features must be at which level


FEATURES = (
    Feature("kraft.version", 1, "3.9-IV0", {}),
    Feature("transaction.version", 2, "4.0-IV2", {}),
    Feature("group.version", 1, "4.0-IV0", {}),
    Feature("eligible.leader.replicas.version", 1, "4.1-IV0", {1: {METADATA_VERSION: 23}}),
    Feature("share.version", 1, "4.2-IV0", {}),
    Feature("streams.version", 1, "4.2-IV1", {}),
)


def parse_release(text: str) -> int | None:
    """Return the level of `4.0-IV3`, or the last level of `4.0`; None if there is none."""
    if text in LEVELS:
        return LEVELS[text]
    parts = text.split(".")
    if "-" in text or len(parts) < 2:
        return None
    prefix = ".".join(parts[:2]) + "-"
    return max(
        (level for release, level in LEVELS.items() if release.startswith(prefix)), default=None
    )


def release_name(level: int) -> str:
    """Return the name of a metadata level, also of an unknown one."""
    return RELEASES.get(level, f"UNKNOWN [{level}]")


def levels_of_release(level: int) -> dict[str, int]:
    """Return the default level of every other feature in a release."""
    return {
        feature.name: feature.max_level if level >= LEVELS[feature.default_from] else 0
        for feature in FEATURES
    }


def requirements(name: str, level: int) -> dict[str, int]:
    """Return the requirements of a feature's level; raise ToolFailed for a missing one."""
    for feature in FEATURES:
        if feature.name == name:
            if not 0 <= level <= feature.max_level:
                raise ToolFailed(f"Feature:{name} does not have a feature level {level}.")
            return feature.requires.get(level, {})
    raise ToolFailed(f"Unknown feature: {name}")


MAX_LEVEL = 32767


@tool()
def main(arguments: list[str]) -> int:
    """Run one command; return 1 if it is refused."""
    options = _parser().parse_args(arguments)
    # Kafka's tool checks the settings also in commands without a request.
    settings = connection_of(options)
    if options.command == "version-mapping":
        print(mapping_text(options.release_version or LATEST_RELEASE))
    elif options.command == "feature-dependencies":
        for text in options.feature:
            print(dependencies_text(*parse_level(text)))
    else:
        with AdminClient(settings) as client:
            COMMANDS[options.command](client, options)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = tool_parser("features", "Describe and change the feature levels of a cluster.")
    add_connection(parser, is_required=True)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    describe = add_sub_command(
        commands, "features", "describe", "show the features and their levels"
    )
    describe.add_argument("--node-id", type=int, help="the node to ask; any when not given")
    for name in ("upgrade", "downgrade"):
        command = add_sub_command(commands, "features", name, f"{name} one or more features")
        command.add_argument("--metadata", metavar="RELEASE", help="deprecated: the metadata level")
        command.add_argument(
            "--release-version", metavar="RELEASE", help="bring all features to a release"
        )
        command.add_argument(
            "--feature", action="append", metavar="FEATURE=LEVEL", help="one feature's level"
        )
        if name == "downgrade":
            command.add_argument("--unsafe", action="store_true", help="even if metadata is lost")
        command.add_argument("--dry-run", action="store_true", help="only say whether it can be")
    disable = add_sub_command(commands, "features", "disable", "bring features to level 0")
    disable.add_argument("--feature", action="append", metavar="FEATURE", help="the feature")
    disable.add_argument("--unsafe", action="store_true", help="even if metadata is lost")
    disable.add_argument("--dry-run", action="store_true", help="only say whether it can be")
    mapping = add_sub_command(
        commands, "features", "version-mapping", "show the levels of a release"
    )
    mapping.add_argument(
        "--release-version", metavar="RELEASE", help=f"{LATEST_RELEASE} when not given"
    )
    dependencies = add_sub_command(
        commands, "features", "feature-dependencies", "show what a feature's level needs"
    )
    dependencies.add_argument(
        "--feature", action="append", required=True, metavar="FEATURE=LEVEL", help="the feature"
    )
    return parser


# Commands with requests.


def _describe(client: AdminClient, options: argparse.Namespace) -> None:
    if options.node_id is not None:
        client.require_node(options.node_id)
    features, epoch = describe_features(client, options.node_id)
    for levels in features:
        print(feature_text(levels, epoch))


def _upgrade(client: AdminClient, options: argparse.Namespace) -> None:
    upgrade_type = UpgradeType.UPGRADE
    _update(client, "upgrade", wanted_levels(options, upgrade_type), upgrade_type, options.dry_run)


def _downgrade(client: AdminClient, options: argparse.Namespace) -> None:
    upgrade_type = _downgrade_type(options)
    levels = wanted_levels(options, upgrade_type)
    _update(client, "downgrade", levels, upgrade_type, options.dry_run)


def _disable(client: AdminClient, options: argparse.Namespace) -> None:
    levels: dict[str, int] = {}
    for name in options.feature or ():
        _add(levels, name, 0)
    _update(client, "disable", levels, _downgrade_type(options), options.dry_run)


COMMANDS = {
    "describe": _describe,
    "upgrade": _upgrade,
    "downgrade": _downgrade,
    "disable": _disable,
}


def _downgrade_type(options: argparse.Namespace) -> UpgradeType:
    return UpgradeType.UNSAFE_DOWNGRADE if options.unsafe else UpgradeType.SAFE_DOWNGRADE


def wanted_levels(options: argparse.Namespace, upgrade_type: UpgradeType) -> dict[str, int]:
    """Return the wanted levels of an upgrade or downgrade, from its arguments."""
    if options.release_version:
        if options.metadata or options.feature:
            raise ToolFailed("Can not specify `release-version` with other feature flags.")
        level = _metadata_level(options.release_version)
        defaults = levels_of_release(level)
        if upgrade_type == UpgradeType.UPGRADE:
            # A feature that the release does not enable by default is left unchanged.
            defaults = {name: one for name, one in defaults.items() if one > 0}
        return {METADATA_VERSION: level, **defaults}
    levels: dict[str, int] = {}
    if options.metadata:
        print(" `metadata` flag is deprecated and may be removed in a future release.")
        levels[METADATA_VERSION] = _metadata_level(options.metadata)
    for text in options.feature or ():
        _add(levels, *parse_level(text))
    return levels


def _metadata_level(release: str) -> int:
    level = parse_release(release)
    if level is None:
        listed = ", ".join(RELEASES.values())
        raise ToolFailed(
            f"Unknown metadata.version {release}. Supported metadata.version are {listed}"
        )
    return level


def _add(levels: dict[str, int], name: str, level: int) -> None:
    if name in levels:
        raise ToolFailed(f"Feature {name} was specified more than once.")
    levels[name] = level


def _update(
    client: AdminClient,
    verb: str,
    levels: dict[str, int],
    upgrade_type: UpgradeType,
    dry_run: bool,
) -> None:
    if not levels:
        raise ToolFailed(f"You must specify at least one feature to {verb}")
    outcomes = update_features(client, levels, upgrade_type, dry_run=dry_run)
    for name, error in outcomes.items():
        print(outcome_text(verb, name, levels[name], error, dry_run=dry_run))
    failed = sum(error is not None for error in outcomes.values())
    if failed:
        raise ToolFailed(f"{failed} out of {len(levels)} operation(s) failed.")


# Output.


def parse_level(text: str) -> tuple[str, int]:
    """Parse `share.version=1`; raise ToolFailed."""
    name, equals, level = text.partition("=")
    if not equals:
        raise ToolFailed(f"Can't parse feature=level string {text}: equals sign not found.")
    try:
        number = int(level.strip())
    except ValueError:
        number = MAX_LEVEL + 1
    if not -MAX_LEVEL - 1 <= number <= MAX_LEVEL:
        raise ToolFailed(
            f"Can't parse feature=level string {text}: unable to parse {level.strip()} as a short."
        )
    return name.strip(), number


def feature_text(levels: FeatureLevels, epoch: int | None) -> str:
    """Return the line about one feature."""
    name = levels.name
    least = level_text(name, levels.min_supported)
    most = level_text(name, levels.max_supported)
    finalized = level_text(name, levels.finalized)
    return (
        f"Feature: {name:<40}  SupportedMinVersion: {least:<15}  SupportedMaxVersion: {most:<15}  "
        f"FinalizedVersionLevel: {finalized:<15}  Epoch: {'-' if epoch is None else epoch}"
    )


def level_text(name: str, level: int) -> str:
    """Return a level as text: that of the metadata version as a release."""
    return release_name(level) if name == METADATA_VERSION else str(level)


def outcome_text(
    verb: str, name: str, level: int, error: KafkaError | None, *, dry_run: bool
) -> str:
    """Return the line about the change of one feature."""
    target = "" if verb == "disable" else f" to {level}"
    if error is not None:
        could = "Can not" if dry_run else "Could not"
        return f"{could} {verb} {name}{target}. {error}"
    past = "disabled" if verb == "disable" else f"{verb}d"
    return f"{name} {'can be' if dry_run else 'was'} {past}{target}."


def mapping_text(release: str) -> str:
    """Return the lines about the feature levels of a release."""
    level = parse_release(release)
    if level is None:
        first = next(iter(RELEASES.values()))
        raise ToolFailed(
            f"Unknown release version '{release}'. Supported versions are: {first} to "
            f"{LATEST_RELEASE}"
        )
    lines = [f"{METADATA_VERSION}={level} ({release})"]
    lines += [f"{name}={default}" for name, default in levels_of_release(level).items()]
    return "\n".join(lines)


def dependencies_text(name: str, level: int) -> str:
    """Return the lines about the requirements of a feature's level."""
    if name == METADATA_VERSION:
        if level not in RELEASES:
            raise ToolFailed(f"Unknown metadata.version {level}")
        return f"{name}={level} ({release_name(level)}) has no dependencies."
    needed = requirements(name, level)
    if not needed:
        return f"{name}={level} has no dependencies."
    lines = [f"{name}={level} requires:"]
    for other, other_level in needed.items():
        suffix = f" ({release_name(other_level)})" if other == METADATA_VERSION else ""
        lines.append(f"    {other}={other_level}{suffix}")
    return "\n".join(lines)
