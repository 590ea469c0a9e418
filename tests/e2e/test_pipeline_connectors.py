"""The demo with its connectors: a database on one side of the pipeline, files on the other.

Products, stock and customers come from SQLite or a real PostgreSQL, orders go to Parquet files by
their state, and to a real Elasticsearch.
"""

import os
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet
import pytest
from elasticsearch import Elasticsearch as Client

from demo.pipeline.connect import CONNECTORS, ELASTICSEARCH_CONNECTOR
from tests.lib.elasticsearch_server import Elasticsearch
from tests.lib.pipeline_processes import call
from tests.lib.postgresql import PostgreSql
from tests.lib.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(280)]

ROOT = Path(__file__).parents[2]
COUNT = 20


@dataclass
class Demo:
    """A demo that serves, and what lies around it."""

    urls: dict[str, str]
    folder: Path
    connectors: list[str]
    postgresql: PostgreSql | None
    elasticsearch: Elasticsearch | None

    def change(self, statement: str) -> None:
        """Have the shop's database do something."""
        if self.postgresql is not None:
            with psycopg.connect(self.postgresql.url) as connection:
                connection.execute(statement.encode())
            return
        database = sqlite3.connect(self.folder / "shop.sqlite", timeout=30)
        with closing(database), database:
            database.execute(statement)

    def final_state(self, product: str, quantity: int) -> str:
        """Place an order and return VALIDATED or FAILED."""
        line = {"product_id": product, "quantity": quantity, "unit_price": "2.55"}
        placed = call(
            "POST", self.urls["orders"] + "/v1/orders", {"customer_id": "c1", "lines": [line]}
        )
        assert placed.status == 201, placed
        judged = call("GET", f"{self.urls['orders']}/v1/orders/{placed.body['id']}/validated")
        return str(judged.body["state"])

    def rows(self, state: str) -> list[dict[str, Any]]:
        found = sorted((self.folder / f"orders/by-state/orders/state={state}").glob("*.parquet"))
        return [row for path in found for row in pyarrow.parquet.read_table(path).to_pylist()]


WITH_ELASTICSEARCH = "postgresql, and elasticsearch"


@pytest.fixture(scope="module", params=["sqlite", WITH_ELASTICSEARCH])
def demo(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Demo]:
    folder = tmp_path_factory.mktemp("demo")
    postgresql, elasticsearch = None, None
    told = {"LITE": "1", "CONNECT": "1", "COUNT": str(COUNT), "RATE": "0"}
    with ExitStack() as stack:
        if request.param != "sqlite":
            postgresql = stack.enter_context(PostgreSql())
            elasticsearch = request.getfixturevalue("elasticsearch")
            told |= {"SHOP": postgresql.url, "ELASTICSEARCH": elasticsearch.url}
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        process = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-m", "millstream", "demo"],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": path, **told},
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        stack.callback(process.terminate)
        assert process.stdout is not None
        said, urls = [], {}
        for line in process.stdout:
            said.append(line)
            if found := re.match(r"(\w+) +(http://\S+)$", line):
                urls[found[1]] = found[2]
            if line.startswith("serving until"):
                break
        assert "connect" in urls, "".join(said)
        assert "WRONG" not in "".join(said)
        connectors = [*CONNECTORS, *([ELASTICSEARCH_CONNECTOR] if elasticsearch else [])]
        yield Demo(urls, folder / "build/demo", connectors, postgresql, elasticsearch)


def test_the_worker_and_all_its_tasks_run(demo: Demo) -> None:
    answer = call("GET", demo.urls["connect"] + "/connectors?expand=status").body
    assert sorted(answer) == sorted(demo.connectors)
    for name in demo.connectors:
        status = answer[name]["status"]
        states = [status["connector"]["state"], *(task["state"] for task in status["tasks"])]
        assert states == ["RUNNING", "RUNNING"], answer[name]


def test_orders_are_judged_by_what_the_database_says(demo: Demo) -> None:
    assert demo.final_state("sold-out", 5) == "FAILED"
    demo.change("UPDATE stock SET quantity = 1000 WHERE product_id = 'sold-out'")
    demo.change("INSERT INTO products (product_id, description) VALUES ('mug', 'A mug')")
    demo.change("INSERT INTO stock (product_id, quantity) VALUES ('mug', 10)")
    until(lambda: demo.final_state("sold-out", 5) == "VALIDATED")
    until(lambda: demo.final_state("mug", 1) == "VALIDATED")


def test_every_order_that_was_validated_is_in_the_files_once(demo: Demo) -> None:
    """By now there are those of the demo and those of the tests before."""
    until(lambda: any(row["lines"][0]["product_id"] == "mug" for row in demo.rows("VALIDATED")))

    def counted(*states: str) -> Counter[str]:
        return Counter(row["order_id"] for state in states for row in demo.rows(state))

    # All are asked for anew each time: none of the files need be the last one.
    until(lambda: counted("VALIDATED", "FAILED") == counted("CREATED"))
    assert set(counted("CREATED").values()) == {1}
    assert {row["state"] for row in demo.rows("VALIDATED")} == {"VALIDATED"}


@pytest.mark.parametrize("demo", [WITH_ELASTICSEARCH], indirect=True)
def test_elasticsearch_has_every_order_as_it_is_now(demo: Demo) -> None:
    assert demo.elasticsearch is not None
    client = Client(demo.elasticsearch.url)

    def created() -> set[str]:
        # Asked for anew each time: the files of the last orders may be written after this begins.
        return {row["order_id"] for row in demo.rows("CREATED")}

    def states() -> dict[str, str]:
        client.indices.refresh(index="orders-by-connector")
        found = client.search(index="orders-by-connector", size=1000)["hits"]["hits"]
        return {hit["_id"]: hit["_source"]["state"] for hit in found}

    until(lambda: set(states().values()) == {"PAID", "FAILED"} and states().keys() == created())
    by_service = {
        order_id: call("GET", f"{demo.urls['orders']}/v1/orders/{order_id}").body["state"]
        for order_id in sorted(created())
    }
    assert states() == by_service
    client.close()
