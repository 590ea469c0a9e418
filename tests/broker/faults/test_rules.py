"""Rules: read from JSON, refused in words, and which calls they hit."""

import random
from typing import Any

import pytest

from broker.faults.asked import Asked
from broker.faults.calls import CallLog
from broker.faults.rule import Call, read_rule
from broker.faults.rule_book import MAX_RULES, RuleBook
from common.kafka.protocol.api_keys import ApiKey

ONCE = {"times": 1}


def call(api: ApiKey = ApiKey.PRODUCE, version: int = 9, **more: Any) -> Call:
    asked = Asked(
        more.pop("topics", {"orders": [0, 1]}),
        more.pop("groups", ()),
        more.pop("transactional_ids", ()),
    )
    values = {"client_id": "a", "principal": "User:alice", **more}
    return Call(api_key=api, version=version, asked=asked, **values)


def rule(**values: Any) -> Any:
    return read_rule({"kind": "delay", "api": "Produce", "ms": 5, "when": ONCE, **values})


def book() -> RuleBook:
    return RuleBook(lambda seed: random.Random(seed).random)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "a rule is an object"),
        ({}, "kind is one of"),
        ({"kind": "eror"}, "kind is one of"),
        ({"kind": "close"}, "needs when"),
        ({"kind": "close", "when": 3}, "when is an object"),
        ({"kind": "close", "when": {"times": 0}}, "times is a whole number from 1"),
        ({"kind": "close", "when": {"times": True}}, "times is a whole number"),
        ({"kind": "close", "when": {"times": 1, "on_call": 2}}, "when is one of"),
        ({"kind": "close", "when": {"always": False}}, "when is one of"),
        ({"kind": "close", "when": {"probability": 2, "seed": 1}}, "above 0, and at most 1"),
        ({"kind": "close", "when": ONCE, "topik": "a"}, "did you mean topic?"),
        ({"kind": "close", "when": ONCE, "topic": ""}, "topic is a text"),
        ({"kind": "close", "when": ONCE, "api": "Produse"}, "did you mean Produce?"),
        ({"kind": "close", "when": ONCE, "api": "Heartbeat", "topic": "a"}, "names no topic"),
        ({"kind": "close", "when": ONCE, "api": "Produce", "group": "a"}, "names no group"),
        (
            {"kind": "close", "when": ONCE, "api": "Heartbeat", "transactional_id": "a"},
            "names no transactional_id",
        ),
        ({"kind": "close", "when": ONCE, "api": "Fetch", "version": 3}, "no version 3, but 4 to"),
        ({"kind": "error", "when": ONCE, "api": "Produce"}, "needs error"),
        (
            {"kind": "error", "when": ONCE, "api": "Produce", "error": "NOT_LEADER"},
            "did you mean NOT_LEADER_OR_FOLLOWER?",
        ),
        ({"kind": "error", "when": ONCE, "error": "NOT_CONTROLLER"}, "needs an api"),
        (
            {"kind": "error", "when": ONCE, "api": "Heartbeat", "error": "NOT_COORDINATOR",
             "at": "partition"},
            "has no error of a partition: it has those of request",
        ),
        (
            {"kind": "error", "when": ONCE, "api": "Fetch", "error": "NOT_CONTROLLER",
             "version": 4, "at": "request"},
            "a Fetch answer of version 4 has no error of a request",
        ),
        (
            {"kind": "throttle", "when": ONCE, "api": "Produce", "version": 0, "ms": 5},
            "has no throttle_time_ms",
        ),
        ({"kind": "damage_records", "when": ONCE, "api": "Produce"}, "only the answers of Fetch"),
        ({"kind": "disk", "when": ONCE, "disk": "full", "api": "Produce"}, "has no 'api'"),
        ({"kind": "delay", "when": ONCE, "ms": -1}, "ms is a whole number from 0"),
        ({"kind": "black_hole", "when": ONCE}, "needs client_id"),
    ],
)  # fmt: skip
def test_a_rule_that_can_never_act_is_refused_in_words(value: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("?", r"\?")):
        read_rule(value)


def test_a_rule_is_read_as_it_is_shown() -> None:
    for more in (
        {"topic": "orders", "partition": 1, "when": {"probability": 0.5, "seed": 7}},
        {"client_id": "a", "principal": "User:b", "version": 9, "when": {"always": True}},
        {"when": {"on_call": 4}, "after": True},
    ):
        made = rule(**more)
        assert read_rule(made.as_json()) == made


def test_a_rule_matches_by_everything_that_it_names() -> None:
    assert rule().matches(call())
    assert not rule().matches(call(ApiKey.FETCH))
    assert rule(topic="orders", partition=1).matches(call())
    assert not rule(topic="orders", partition=2).matches(call())
    assert not rule(topic="other").matches(call())
    assert rule(partition=1).matches(call())
    assert not rule(version=8).matches(call())
    assert not rule(client_id="b").matches(call())
    assert rule(principal="User:alice").matches(call())
    assert rule(api="EndTxn", transactional_id="t").matches(
        call(ApiKey.END_TXN, transactional_ids=("t",))
    )
    assert not rule(api="Heartbeat", group="g").matches(call(ApiKey.HEARTBEAT, groups=("h",)))


def test_a_request_that_names_no_partitions_is_about_each() -> None:
    metadata = rule(api="Metadata", topic="orders", partition=1)
    assert metadata.matches(call(ApiKey.METADATA, topics={"orders": []}))


def test_calls_of_other_brokers_are_hit_only_by_their_client_id() -> None:
    assert not rule().matches(call(is_of_broker=True))
    assert rule(client_id="a").matches(call(is_of_broker=True))


def hits(when: dict[str, Any], calls: int = 6) -> list[bool]:
    rules = book()
    rules.arm(rule(when=when))
    return [bool(rules.hits_on(call())) for _ in range(calls)]


def test_triggers() -> None:
    assert hits({"times": 2}) == [True, True, False, False, False, False]
    assert hits({"on_call": 3}) == [False, False, True, False, False, False]
    assert hits({"always": True}) == [True] * 6
    by_chance = hits({"probability": 0.5, "seed": 7}, calls=100)
    assert by_chance == hits({"probability": 0.5, "seed": 7}, calls=100)
    assert by_chance != hits({"probability": 0.5, "seed": 8}, calls=100)
    assert 20 < sum(by_chance) < 80


def test_one_call_meets_all_delays_and_one_other_rule_and_the_rest_keep_their_counts() -> None:
    rules = book()
    first = rules.arm(rule(kind="delay"))
    close = rules.arm(read_rule({"kind": "close", "api": "Produce", "when": ONCE}))
    reset = rules.arm(read_rule({"kind": "reset", "api": "Produce", "when": ONCE}))
    last = rules.arm(rule(kind="delay"))
    assert rules.hits_on(call()) == [first, close, last]
    assert rules.hits_on(call()) == [reset]
    assert (close.calls, close.hits) == (2, 1)


def test_rules_are_limited() -> None:
    rules = book()
    for _ in range(MAX_RULES):
        rules.arm(rule())
    with pytest.raises(ValueError, match="remove some first"):
        rules.arm(rule())


def test_the_log_of_calls_is_bounded_in_bytes_and_counts_what_it_dropped() -> None:
    calls = CallLog(max_bytes=10_000)
    for number in range(100):
        calls.note(call(client_id=str(number)), at_ms=number)
    kept = list(calls.since(0, {}))
    assert 5 < len(kept) < 20
    assert calls.dropped == 100 - len(kept)
    assert kept[-1].call.client_id == "99"
    calls.note(call(client_id="x" * 20_000), at_ms=1)
    assert not list(calls.since(0, {}))
    assert [each.call_id for each in calls.since(100, {"api": "Produce"})] == []


def test_calls_are_found_by_what_they_are_about() -> None:
    calls = CallLog()
    calls.note(call(), at_ms=1)
    calls.note(call(ApiKey.HEARTBEAT, topics={}, groups=("g",)), at_ms=2)
    found = {
        name: [each.call_id for each in calls.since(0, {name: value})]
        for name, value in {
            "api": "Heartbeat", "topic": "orders", "group": "g", "client_id": "a",
            "principal": "User:bob", "transactional_id": "t",
        }.items()
    }  # fmt: skip
    assert found == {
        "api": [2], "topic": [1], "group": [2], "client_id": [1, 2],
        "principal": [], "transactional_id": [],
    }  # fmt: skip
