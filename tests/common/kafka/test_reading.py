"""A record that a stranger wrote stops no program that reads a topic to its end, or follows it."""

import asyncio
import json
import logging
from typing import Any

import pytest

from common.kafka.reading import replay_or_pass
from common.processing.changelog import Store
from common.processing.settings import Settings
from common.registry.client import RegistryAwayError
from services.fraud import app as fraud
from services.order_details.app import Catalogue
from streams.records import ORIGIN_HEADER, Origin, origin_of
from tests.lib.pipeline_bus import record

STRANGE: list[tuple[bytes | None, bytes]] = [
    (None, b"{}"),
    (b"\xff", b"{}"),
    (b"\xed\xa0\x80", b"{}"),
    (b"k", b"\xff"),
    (b"k", b"["),
    (b"k", b"[" * 100_000),
    (b"k", b"9" * 5000),
    (b"k", b"7"),
    (b"k", b'{"a":1e999}'),
]


async def nothing(*_: Any) -> Any:
    return {}


@pytest.mark.parametrize(("key", "value"), STRANGE)
def test_changelog_passes_over_what_it_cannot_read(
    key: bytes | None, value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(fraud.CHANGELOG.name, dict, lambda row: row["total"], nothing)
    with caplog.at_level(logging.WARNING):
        asyncio.run(
            replay_or_pass(store._replay_record, record(fraud.CHANGELOG.name, 0, 7, key, value))
        )
    assert "record passed over" in caplog.text
    assert ":7" in caplog.text
    assert len(caplog.text) < 600
    assert store.rows(0) == {}
    good = record(fraud.CHANGELOG.name, 0, 8, b"k", json.dumps({"total": 3}).encode())
    asyncio.run(replay_or_pass(store._replay_record, good))
    assert store.rows(0) == {"k": 3}


def test_what_may_work_later_is_not_passed_over() -> None:
    async def away(_: Any) -> None:
        raise RegistryAwayError("away")

    with pytest.raises(RegistryAwayError):
        asyncio.run(replay_or_pass(away, record("t", 0, 0, b"k", b"v")))


@pytest.mark.parametrize("key", [None, b"\xff"])
def test_followed_table_passes_over_a_key_that_is_no_text(
    key: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    catalogue = Catalogue(Settings())
    catalogue.table._replay_one(record("products", 0, 7, key, b"x"))
    catalogue.table._replay_one(record("products", 0, 8, b"85123A", b"x"))
    assert "record passed over" in caplog.text
    assert catalogue.has("85123A")


@pytest.mark.parametrize(
    "header", [b"", b"\xff:1", b"orders-0", b"orders-0:x", b"orders-0:" + b"9" * 5000, b":1", None]
)
def test_header_that_no_topology_wrote_names_no_origin(header: Any) -> None:
    assert origin_of([(ORIGIN_HEADER, header)], "t", 1, 5) == Origin("t-1", 5)
    assert origin_of([(ORIGIN_HEADER, b"orders-3:1712")], "t", 1, 5) == Origin("orders-3", 1712)
