"""Access rules that follow the source: which ones, as what, and where a target keeps none."""

import logging
from collections.abc import Iterable
from typing import Any

import pytest

from mirror.copying.source import MirrorSourceConnector
from mirror.topics import TopicAcl, remote_acls
from tests.mirror.test_policies import flow

ALICE = "User:alice"


def rule(topic: str, operation: str, permission: str = "allow", kind: str = "literal") -> TopicAcl:
    return TopicAcl(topic, kind, ALICE, "*", operation, permission)


def test_who_may_read_may_read_the_copy() -> None:
    assert remote_acls(flow(), [rule("orders", "read")]) == [rule("a.orders", "read")]


def test_nobody_is_given_leave_to_write_a_copy() -> None:
    assert remote_acls(flow(), [rule("orders", "write")]) == []
    assert remote_acls(flow(), [rule("orders", "all")]) == [rule("a.orders", "read")]


def test_what_is_denied_stays_denied_writing_too() -> None:
    denied = [rule("orders", "write", "deny"), rule("orders", "all", "deny")]
    assert remote_acls(flow(), denied) == [
        rule("a.orders", "write", "deny"),
        rule("a.orders", "all", "deny"),
    ]


def test_rules_of_patterns_and_of_topics_that_are_not_mirrored_stay_behind() -> None:
    rules = [rule("ord", "read", kind="prefixed"), rule("*", "read"), rule("b.orders", "read")]
    assert remote_acls(flow(), rules) == []


class Cluster:
    """Keeps rules, or None for one that has no authorizer."""

    def __init__(self, rules: list[TopicAcl] | None) -> None:
        self.rules = rules

    def acls(self) -> list[TopicAcl] | None:
        return self.rules

    def create_acls(self, rules: Iterable[TopicAcl]) -> bool:
        if self.rules is not None:
            self.rules += rules
        return self.rules is not None


def follow(source: Cluster, target: Cluster) -> None:
    connector: Any = MirrorSourceConnector()
    connector._flow, connector._source, connector._target = flow(), source, target
    connector._follow_acls()


class WithoutRules(Cluster):
    """Has no authorizer, which only says so when a rule is added, as librdkafka has it."""

    def acls(self) -> list[TopicAcl] | None:
        return []


def test_a_target_that_shows_no_rules_may_have_no_authorizer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        follow(Cluster([rule("orders", "read")]), WithoutRules(None))
    assert caplog.messages == ["target keeps no access rules flow=a->b lacks=1"]


def test_what_the_target_lacks_is_made_and_once() -> None:
    source, target = Cluster([rule("orders", "read"), rule("payments", "read")]), Cluster([])
    follow(source, target)
    follow(source, target)
    assert target.rules == [rule("a.orders", "read"), rule("a.payments", "read")]


def test_a_target_without_an_authorizer_is_told_of_in_a_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        follow(Cluster([rule("orders", "read")]), Cluster(None))
    assert caplog.messages == ["target keeps no access rules flow=a->b lacks=1"]
    caplog.clear()
    follow(Cluster(None), Cluster([]))
    assert caplog.messages == []
