"""Our defaults beside Apache Kafka's: each difference is in `docs/defaults.md`, with its reason."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from broker.config.known_settings import KNOWN_SETTINGS
from broker.log.topic_settings import TOPIC_SETTINGS, SettingValue
from broker.metadata.control.group_limits import GROUP_LIMITS, GROUP_SETTINGS

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "defaults.md").read_text()
ROW = re.compile(r"\| `(?P<name>[^`]+)` \| (?P<kafka>.*?) \| (?P<ours>.*?) \| (?P<reason>.*?) \|")
NONE = "(none)"


def kafka_defaults(kind: str) -> dict[str, tuple[str, str]]:
    lines = (DOCS / "kafka-4.3.1-defaults.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines]
    return {name: (type_name, value) for row, name, type_name, value in rows if row == kind}


def our_defaults(kind: str) -> Mapping[str, tuple[str, str]]:
    if kind == "broker":
        return {name: (known.type, text(known.default)) for name, known in KNOWN_SETTINGS.items()}
    return {
        name: (setting.type.name, text(setting.default))
        for name, setting in TOPIC_SETTINGS.items()
        if not setting.is_internal
    }


def text(value: SettingValue) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return str(value).lower()
        case tuple():
            return ",".join(value) or '""'
        case _:
            return str(value) or '""'


def told_differences(heading: str) -> Iterator[tuple[str, str, str]]:
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    for row in ROW.finditer(section):
        assert row["reason"], row
        yield row["name"], row["kafka"], row["ours"]


@pytest.mark.parametrize("kind", ["broker", "topic"])
def test_every_default_that_differs_is_told(kind: str) -> None:
    kafka, ours = kafka_defaults(kind), our_defaults(kind)
    assert len(kafka) > 30
    differing = {
        (name, kafka.get(name, ("", NONE))[1], ours.get(name, ("", NONE))[1])
        for name in kafka.keys() | ours.keys()
        if kafka.get(name) != ours.get(name)
    }
    assert set(told_differences(f"{kind.title()}s")) == differing


@pytest.mark.parametrize("kind", ["broker", "topic"])
def test_every_type_is_kafkas(kind: str) -> None:
    kafka, ours = kafka_defaults(kind), our_defaults(kind)
    both = kafka.keys() & ours.keys()
    assert {name: ours[name][0] for name in both} == {name: kafka[name][0] for name in both}


def test_groups_have_kafkas_settings_but_for_those_that_are_told() -> None:
    lacking = sorted(kafka_defaults("group").keys() - GROUP_SETTINGS)
    assert kafka_defaults("group").keys() >= GROUP_SETTINGS
    told = {
        name.removesuffix("*"): int(kafka.split()[0])
        for name, kafka, _ in told_differences("Groups")
    }
    assert [name for name in lacking if not name.startswith(tuple(told))] == []
    for prefix, count in told.items():
        assert len([name for name in lacking if name.startswith(prefix)]) == count
    for name in GROUP_LIMITS:
        # A group has the default of its broker.
        assert kafka_defaults("group")[name] == kafka_defaults("broker")[f"group.{name}"]
