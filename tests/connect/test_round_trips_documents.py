"""Random tables through CDC into Elasticsearch: the documents by their keys are the rows."""

import json
from collections.abc import Iterator
from functools import partial

import pytest
from elasticsearch import Elasticsearch as Client
from hypothesis import assume, given
from hypothesis import strategies as st

from connect.connectors.elasticsearch.sink_task import ElasticsearchSinkTask
from connect.connectors.postgresql import PostgresSourceConnector
from tests.connect.held_values import EXACT, OWN_TYPES, held_value
from tests.connect.random_tables import (
    FEWER,
    Case,
    Column,
    Table,
    Target,
    Way,
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
        client.indices.refresh(index=index, ignore_unavailable=True)
        found = client.search(index=index, size=1000, ignore_unavailable=True)["hits"]["hits"]
        documents = [one["_source"] for one in found]
        held = partial(held_value, is_exact=is_exact, is_document=True)
        wanted = table.held_rows(held)
        assert comparable(case, documents) == comparable(case, wanted)
        if is_exact:
            keys = [{one.name: row[one.name] for one in case.keys} for row in documents]
            assert [json.loads(one["_id"]) for one in found] == keys
