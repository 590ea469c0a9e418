"""Databases of tables, when something else still refers to them."""

import asyncio
from pathlib import Path

import pytest
from faust.types import TP
from rocksdict import DbClosedError

from streams.app import Topologies, build_app
from streams.settings import Settings
from streams.telemetry import Metrics

TABLE = "order-versions"


def app_in(folder: Path) -> Topologies:
    topologies = build_app(Settings(data_dir=str(folder)), "http://localhost", Metrics())
    topologies.app.finalize()
    return topologies


def test_an_app_that_crashed_keeps_no_database_from_the_next(tmp_path: Path) -> None:
    store = app_in(tmp_path).tables[TABLE].data
    database = store._db_for_partition(3)
    database.put(b"k", b"v")
    # Nobody has stopped the first; a traceback may refer to it for as long as it likes.
    again = app_in(tmp_path).tables[TABLE].data
    assert again._db_for_partition(3).get(b"k") == b"v"
    asyncio.run(again.stop())
    assert database is not None


def test_a_database_is_closed_when_its_store_stops_or_gives_it_up(tmp_path: Path) -> None:
    table = app_in(tmp_path).tables[TABLE]
    store = table.data
    given_up, kept = store._db_for_partition(1), store._db_for_partition(2)
    kept.put(b"k", b"v")
    (topic,) = table.changelog_topic.topics
    store.revoke_partitions(table, {TP(topic, 1)})
    with pytest.raises(DbClosedError):
        given_up.get(b"k")
    assert kept.get(b"k") == b"v"
    asyncio.run(store.stop())
    with pytest.raises(DbClosedError):
        kept.get(b"k")
