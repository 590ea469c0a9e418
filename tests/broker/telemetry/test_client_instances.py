"""Which telemetry requests of a client are refused, and what it is told."""

import pytest

from broker.telemetry.client_instances import (
    MAX_INSTANCES,
    ClientInstance,
    ClientInstances,
    Push,
)
from broker.telemetry.subscriptions import Subscription, Wanted, read_subscription
from common.kafka.errors import ErrorCode, KafkaError

SHOP = {"client_id": "shop", "client_software_name": "librdkafka"}
ID = b"0123456789abcdef"
ALL = Subscription(frozenset({"*"}), 1_000, {})


def instances(*subscriptions: Subscription) -> ClientInstances:
    made = ClientInstances(max_push_bytes=100)
    made.subscribe(subscriptions)
    return made


def push(instance: ClientInstance, size: int = 1, codec: int = 0, end: bool = False) -> Push:
    return Push(instance.subscription_id, codec, size, end)


def refusal(known: ClientInstances, instance: ClientInstance, told: Push, now_ms: int) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        known.check_push(instance, told, now_ms)
    return caught.value.code


def test_a_client_gets_all_that_matches_at_the_lowest_interval() -> None:
    mine = read_subscription(
        {"metrics": "org.a,org.b", "interval.ms": "500", "match": "client_id=sh.*"}
    )
    other = read_subscription({"metrics": "org.c", "interval.ms": "100", "match": "client_id=x"})
    assert mine is not None
    assert other is not None
    found = instances(mine, other).find(ID, SHOP, 0)
    assert found.wanted == Wanted(("org.a", "org.b"), 500)
    assert found.wanted.includes("org.bytes")
    assert not found.wanted.includes("org.c")


def test_a_selector_that_the_client_does_not_have_matches_nothing() -> None:
    odd = read_subscription({"metrics": "*", "match": "client_source_port=.*"})
    assert odd is not None
    assert instances(odd).find(ID, SHOP, 0).wanted == Wanted()


def test_a_client_asks_and_pushes_once_per_interval() -> None:
    known = instances(ALL)
    client = known.find(ID, SHOP, 0)
    known.check_get(client, 0)
    known.check_push(client, push(client), 1)
    assert refusal(known, client, push(client), 500) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    with pytest.raises(KafkaError):
        known.check_get(client, 900)
    known.check_push(client, push(client), 1_001)
    assert known.throttle_count == 2


def test_a_push_after_a_change_of_subscriptions_has_an_unknown_id_and_the_client_asks_at_once() -> (
    None
):
    known = instances(ALL)
    told = push(known.find(ID, SHOP, 0))
    known.subscribe([Subscription(frozenset({"org.a"}), 1_000, {})])
    client = known.find(ID, SHOP, 10)
    assert refusal(known, client, told, 10) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    known.check_get(client, 11)
    known.check_push(client, push(client), 1_010)


def test_the_last_push_may_come_early_and_nothing_may_follow() -> None:
    known = instances(ALL)
    client = known.find(ID, SHOP, 0)
    known.check_push(client, push(client), 0)
    known.check_push(client, push(client, end=True), 1)
    assert refusal(known, client, push(client), 2_000) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("size", "codec", "code"),
    [
        (101, 0, ErrorCode.TELEMETRY_TOO_LARGE),
        (1, 5, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (1, -1, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    ],
)
def test_a_push_is_refused(size: int, codec: int, code: ErrorCode) -> None:
    known = instances(ALL)
    client = known.find(ID, SHOP, 0)
    assert refusal(known, client, push(client, size, codec), 0) == code


def test_the_cache_is_bounded_and_drops_the_client_that_was_silent_longest() -> None:
    known = instances(ALL)
    ids = [number.to_bytes(16, "big") for number in range(2, MAX_INSTANCES + 3)]
    for now_ms, instance_id in enumerate(ids):
        known.find(instance_id, SHOP, now_ms)
        known.find(ids[0], SHOP, now_ms)
    assert len(known) == MAX_INSTANCES
    known.expire(now_ms=10**6)
    assert len(known) == 0


@pytest.mark.parametrize(
    "settings",
    [{"interval.ms": "99"}, {"interval.ms": "x"}, {"match": "color=red"}, {"match": "client_id=("}],
)
def test_settings_that_are_not_valid_are_no_subscription(settings: dict[str, str]) -> None:
    assert read_subscription(settings) is None
