"""The settings of a share group: its own values, within the broker's bounds."""

from broker.metadata.share_reset import Reset
from broker.share.group_settings import Bounded, ShareGroupSettings, ShareLeaderConfig


def test_a_group_without_settings_has_those_of_the_broker():
    config = ShareLeaderConfig(delivery_count_limit=Bounded(7, 2, 10))
    settings = config.of_group({})
    assert settings == ShareGroupSettings(settings.policy._replace(delivery_count_limit=7))
    assert ShareLeaderConfig().of_group({}) == ShareGroupSettings()


def test_a_group_may_have_its_own_settings():
    settings = ShareLeaderConfig().of_group(
        {
            "share.delivery.count.limit": "3",
            "share.record.lock.duration.ms": "20000",
            "share.partition.max.record.locks": "500",
            "share.renew.acknowledge.enable": "false",
            "share.auto.offset.reset": "by_duration:PT2H",
            "share.isolation.level": "read_committed",
        }
    )
    assert settings.policy == (3, 20_000, 500, False)
    assert settings[1:] == (Reset.BY_DURATION, 7_200_000, True)


def test_a_value_outside_of_the_brokers_bounds_counts_as_the_nearest():
    config = ShareLeaderConfig()
    low = config.of_group({"share.record.lock.duration.ms": "1000"})
    high = config.of_group({"share.record.lock.duration.ms": "3600000"})
    assert low.policy.record_lock_duration_ms == 15_000
    assert high.policy.record_lock_duration_ms == 60_000
