"""Which settings of a broker change at run time: each that Kafka lists has an outcome here."""

from pathlib import Path

import pytest

from broker.config.broker_config import BrokerConfig
from broker.config.dynamic_settings import (
    ACTING,
    OF_ONE_BROKER,
    TLS_STORES,
    WITHOUT_EFFECT,
    is_dynamic,
    validate_dynamic_settings,
    with_dynamic_settings,
)
from broker.config.known_settings import KNOWN_SETTINGS
from common.kafka.errors import ErrorCode, KafkaError

DOCS = Path(__file__).parents[3] / "docs"
KAFKAS = dict(
    line.split("\t")
    for line in (DOCS / "kafka-4.3.1-dynamic-settings.tsv").read_text().splitlines()
)
"""The settings that Kafka 4.3.1 lets change, each with its scope."""
ONLY_IN_FILES = (
    "log.flush.scheduler.interval.ms",
    "log.retention.hours",
    "log.retention.minutes",
    "log.roll.hours",
    "log.roll.jitter.hours",
)


def test_every_setting_that_kafka_lists_acts_or_says_that_it_does_not() -> None:
    assert not WITHOUT_EFFECT.keys() & (ACTING | TLS_STORES)
    ours = ACTING | TLS_STORES | WITHOUT_EFFECT.keys()
    throttles = {name for name in ours if "throttled" in name or "alter.log.dirs" in name}
    assert ours - throttles == KAFKAS.keys() - throttles
    assert {name for name in KAFKAS if KAFKAS[name] == "per-broker"} == OF_ONE_BROKER


def test_the_page_has_every_setting_without_effect_and_its_reason() -> None:
    lines = (DOCS / "dynamic-settings.md").read_text().splitlines()
    rows = dict(
        [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith("| `")
    )
    assert rows == WITHOUT_EFFECT


def value_of(name: str) -> str:
    known = KNOWN_SETTINGS[name]
    return {"DOUBLE": "0.5", "BOOLEAN": "true"}.get(known.type) or known.default or "1"


@pytest.mark.parametrize("name", sorted(WITHOUT_EFFECT))
def test_what_does_nothing_is_taken_and_leaves_the_settings_as_they_are(name: str) -> None:
    wanted = {name: value_of(name)}
    validate_dynamic_settings(wanted)
    if name in OF_ONE_BROKER:
        with pytest.raises(KafkaError, match="broker id must be specified"):
            validate_dynamic_settings(wanted, is_for_all=True)
    else:
        validate_dynamic_settings(wanted, is_for_all=True)
    static = BrokerConfig.from_settings({})
    assert with_dynamic_settings(static, {}, wanted) == static


def test_a_value_of_another_type_is_refused_also_if_it_would_do_nothing() -> None:
    for name, known in KNOWN_SETTINGS.items():
        if name in WITHOUT_EFFECT and known.type in {"INT", "LONG", "SHORT", "DOUBLE", "BOOLEAN"}:
            with pytest.raises(KafkaError) as caught:
                validate_dynamic_settings({name: "seven"})
            assert caught.value.code == ErrorCode.INVALID_CONFIG, name


@pytest.mark.parametrize("name", [*ONLY_IN_FILES, "node.id", "log.dirs"])
def test_what_kafka_does_not_let_change_is_refused(name: str) -> None:
    assert not is_dynamic(name)
    with pytest.raises(KafkaError, match="Cannot update these configs dynamically"):
        validate_dynamic_settings({name: "7"})
