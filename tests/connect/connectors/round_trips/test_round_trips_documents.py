"""Random tables through CDC, or the JDBC source, into Elasticsearch: documents are the rows."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from elasticsearch import Elasticsearch as Client
from hypothesis import assume, given
from hypothesis import strategies as st

from connect.connectors.elasticsearch.sink_task import ElasticsearchSinkTask
from connect.connectors.jdbc import JdbcSourceConnector
from connect.connectors.postgresql.source import PostgresSourceConnector
from tests.connect.connectors.round_trips.held_values import (
    EXACT,
    OWN_TYPES,
    held_value,
    read_value,
)
from tests.connect.connectors.round_trips.random_tables import (
    FEWER,
    Case,
    Column,
    Table,
    Target,
    Way,
    bulk,
    cases,
    cdc,
    comparable,
    walk,
)
from tests.lib.elasticsearch_server import Elasticsearch
from tests.lib.postgresql import PostgreSql
from tests.lib.postgresql_changes import emptied

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSql]:
    with PostgreSql() as running:
        yield running


def has_paths(columns: list[Column]) -> bool:
    """Tell whether the columns' names can be the fields of an index, in which a dot is a path."""
    paths = [tuple(one.name.split(".")) for one in columns]
    is_named = all(part.strip() for path in paths for part in path)
    return is_named and not any(
        one != other and other[: len(one)] == one for one in paths for other in paths
    )


@FEWER
@given(case=cases(), is_exact=st.booleans())
def test_changes_make_the_documents_what_the_source_is(
    server: PostgreSql, elasticsearch: Elasticsearch, case: Case, is_exact: bool
) -> None:
    assume(has_paths([*case.keys, *case.others]))
    index = "shop.public.a"
    with emptied(server) as database, Client(elasticsearch.url) as client:
        client.indices.delete(index=index, ignore_unavailable=True)
        table = Table(database, case)
        sink = {"connection.url": elasticsearch.url, "behavior.on.null.values": "delete"}
        target = Target(ElasticsearchSinkTask, sink, has_text_keys=True)
        modes = EXACT if is_exact else OWN_TYPES
        way = Way(PostgresSourceConnector, cdc(server, modes), target)
        walk(table, case, way, deletes=True)
        while way.deliver():
            pass
        way.kill()
        found = documents_in(client, index)
        documents = [one["_source"] for one in found]
        held = partial(held_value, is_exact=is_exact, is_document=True)
        assert comparable(case, documents) == comparable(case, table.held_rows(held))
        if is_exact:
            keys = [{one.name: row[one.name] for one in case.keys} for row in documents]
            assert [json.loads(one["_id"]) for one in found] == keys


@FEWER
@given(case=cases(), is_exact=st.booleans())
def test_rows_that_are_read_make_the_documents_what_the_source_is(
    server: PostgreSql, elasticsearch: Elasticsearch, case: Case, is_exact: bool
) -> None:
    assume(has_paths([*case.keys, *case.others]))
    with emptied(server) as database, Client(elasticsearch.url) as client:
        client.indices.delete(index="a", ignore_unavailable=True)
        table = Table(database, case)
        key_fields = tuple(one.name for one in case.keys)
        sink = {"connection.url": elasticsearch.url}
        target = Target(ElasticsearchSinkTask, sink, has_text_keys=True, key_fields=key_fields)
        form = "micros_iso_datetime_string" if is_exact else "connect_logical"
        way = Way(JdbcSourceConnector, bulk(server, form), target)
        walk(table, case, way, deletes=False)
        way.kill()
        way.deliver(polls=20)
        way.kill()
        documents = [one["_source"] for one in documents_in(client, "a")]
        held = partial(read_value, is_exact=is_exact, is_document=True)
        assert comparable(case, documents) == comparable(case, table.held_rows(held))


def documents_in(client: Client, index: str) -> list[dict[str, Any]]:
    client.indices.refresh(index=index, ignore_unavailable=True)
    found = client.search(index=index, size=1000, ignore_unavailable=True)
    hits: list[dict[str, Any]] = found["hits"]["hits"]
    return hits
