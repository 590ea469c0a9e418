"""The releases of Kafka's metadata version, and the feature levels of each (KIP-584, KIP-1022).

A release such as 4.3-IV0 is a level of `metadata.version`; every other feature has the level that
is the default from that release on.
"""

from typing import NamedTuple

from broker.cli.arguments import ToolFailed

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
