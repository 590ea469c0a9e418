"""The rules that the secured demo shows."""

import asyncio

import pytest

from common.credentials.access import KafkaAccess
from demo.pipeline import security

ORDERS, FRAUD = ("User:orders", "ALLOW WRITE on orders"), ("User:fraud", "ALLOW READ on orders")


def test_rules_are_shown_when_the_broker_that_is_asked_knows_them_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = iter([[], [ORDERS], [FRAUD, ORDERS]])
    monkeypatch.setattr(security, "rules", lambda admin: next(answers))
    monkeypatch.setattr(security, "_RULES_PAUSE_SECONDS", 0)
    wanted = ["User:orders", "User:fraud"]
    found = asyncio.run(security._rules_of(KafkaAccess("nowhere"), wanted))
    assert found == [FRAUD, ORDERS]
