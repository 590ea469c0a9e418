"""Topic settings: Kafka's names, defaults, limits and synonyms."""

import pytest

from broker.log.config import TOPIC_SETTINGS, LogConfig, format_value, topic_defaults
from common.kafka.errors import ErrorCode, KafkaError


def test_defaults_of_the_class_are_those_of_the_table() -> None:
    config = LogConfig()
    for setting in TOPIC_SETTINGS.values():
        assert getattr(config, setting.field_name) == setting.default, setting.name


def test_every_default_passes_its_own_rule() -> None:
    for setting in TOPIC_SETTINGS.values():
        text = format_value(setting.default)
        if text is not None:
            assert setting.parse(text) == setting.default


def test_settings_are_laid_over_the_defaults() -> None:
    broker = LogConfig.from_settings({"retention.ms": "5", "cleanup.policy": "compact, delete"})
    topic = LogConfig.from_settings({"retention.ms": "-1"}, broker)
    assert topic.retention_ms == -1
    assert topic.is_compacted
    assert topic.is_deleted


def test_an_empty_cleanup_policy_is_allowed() -> None:
    config = LogConfig.from_settings({"cleanup.policy": ""})
    assert not config.is_compacted
    assert not config.is_deleted


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("no.such.setting", "1"),
        ("retention.ms", "-2"),
        ("retention.ms", "soon"),
        ("retention.ms", str(2**63)),
        ("segment.bytes", "1048575"),
        ("segment.bytes", "1_048_576"),
        ("cleanup.policy", "shred"),
        ("cleanup.policy", "delete,delete"),
        ("cleanup.policy", "delete,,compact"),
        ("compression.type", "brotli"),
        ("compression.gzip.level", "0"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("min.insync.replicas", "0"),
        ("preallocate", "yes"),
        ("leader.replication.throttled.replicas", "0:x"),
        ("min.compaction.lag.ms", str(2**63 - 1) + "0"),
    ],
)
def test_bad_settings_are_refused(name: str, text: str) -> None:
    with pytest.raises(KafkaError) as refusal:
        LogConfig.from_settings({name: text})
    assert refusal.value.code == ErrorCode.INVALID_CONFIG
    assert name in str(refusal.value)


def test_lags_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(KafkaError):
        LogConfig.from_settings({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"})


def test_broker_synonyms_give_topic_defaults_in_kafkas_order() -> None:
    assert topic_defaults({"log.retention.hours": "2"}) == {"retention.ms": "7200000"}
    assert topic_defaults({"log.retention.hours": "2", "log.retention.minutes": "1"}) == {
        "retention.ms": "60000"
    }
    assert topic_defaults({"log.retention.hours": "-1"}) == {"retention.ms": "-1"}
    assert topic_defaults({"message.max.bytes": "7"}) == {"max.message.bytes": "7"}


def test_a_compacted_topic_rolls_early_enough_for_its_compaction_lag() -> None:
    config = LogConfig.from_settings({"cleanup.policy": "compact", "max.compaction.lag.ms": "9"})
    assert config.segment_age_limit_ms == 9
