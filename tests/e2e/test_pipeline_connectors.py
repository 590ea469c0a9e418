"""The pipeline between a database and files: what deploy/connect tells its users, as it stands.

Products, stock and customers come from SQLite, orders go to Parquet files by their state.
"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from millrace.testing import LocalBroker
from tests.lib.connect_worker import ConnectWorker, eventually
from tests.lib.pipeline_processes import JUDGES, Pipeline

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

DEPLOY = Path(__file__).parents[2] / "deploy" / "connect"
CONNECTORS = ("shop-products", "shop-stock", "shop-customers", "orders-to-parquet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shop")
    with sqlite3.connect(path / "shop.sqlite") as database:
        database.executescript((DEPLOY / "shop.sql").read_text())
    database.close()
    return path


@pytest.fixture(scope="module")
def pipeline(folder: Path) -> Iterator[Pipeline]:
    with (
        LocalBroker() as broker,
        Pipeline(broker.bootstrap_servers, folder) as running,
    ):
        running.start("orders", *(name for name in JUDGES if name != "orders"))
        yield running


@pytest.fixture(scope="module")
def worker(pipeline: Pipeline, folder: Path) -> Iterator[ConnectWorker]:
    """Give a worker that was told what the files say, but for where things are."""
    here = {
        "localhost:9092": pipeline.bootstrap_servers,
        "http://localhost:8081": pipeline.urls["registry"],
        "connect-offsets": f"{folder}/connect-offsets",
        "sqlite:///shop.sqlite": f"sqlite:///{folder}/shop.sqlite",
        "/tmp/millrace-orders": f"{folder}/files",
    }

    def told(name: str) -> str:
        text = (DEPLOY / name).read_text()
        for written, real in here.items():
            text = text.replace(written, real)
        return text

    settings = dict(
        line.split("=", 1) for line in told("worker.properties").splitlines() if "=" in line
    )
    files = []
    for name in CONNECTORS:
        files.append(folder / f"{name}.json")
        files[-1].write_text(told(f"{name}.json"))
    with ConnectWorker(folder, settings, *files) as started:
        for name in CONNECTORS:
            started.wait_for(name, connector="RUNNING", t0="RUNNING")
        yield started


def final_state(pipeline: Pipeline, customer: str, product: str, quantity: int) -> str:
    line = {"product_id": product, "quantity": quantity, "unit_price": "2.55"}
    placed = pipeline.post({"customer_id": customer, "lines": [line]})
    assert placed.status == 201, placed
    state: str = pipeline.validated(placed.body["id"]).body["state"]
    return state


def change(folder: Path, statement: str) -> None:
    database = sqlite3.connect(folder / "shop.sqlite")
    with database:
        database.execute(statement)
    database.close()


def rows(folder: Path, state: str) -> list[dict[str, Any]]:
    found = sorted((folder / "files/by-state/orders" / f"state={state}").glob("*.parquet"))
    return [row for path in found for row in pyarrow.parquet.read_table(path).to_pylist()]


def test_orders_are_judged_by_what_the_database_says_and_kept_as_parquet(
    worker: ConnectWorker, pipeline: Pipeline, folder: Path
) -> None:
    # Until the stock has come, its products are unknown.
    eventually(lambda: final_state(pipeline, "c1", "item-001", 1) == "VALIDATED")
    assert final_state(pipeline, "c2", "item-002", 5) == "FAILED"

    change(folder, "UPDATE stock SET quantity = 1000 WHERE product_id = 'item-002'")
    change(folder, "INSERT INTO products (product_id, description) VALUES ('item-003', 'A mug')")
    change(folder, "INSERT INTO stock (product_id, quantity) VALUES ('item-003', 10)")
    eventually(lambda: final_state(pipeline, "c2", "item-002", 5) == "VALIDATED")
    eventually(lambda: final_state(pipeline, "c2", "item-003", 1) == "VALIDATED")

    def products_kept() -> set[str]:
        return {line["product_id"] for row in rows(folder, "VALIDATED") for line in row["lines"]}

    eventually(lambda: products_kept() == {"item-001", "item-002", "item-003"})
    validated = rows(folder, "VALIDATED")
    assert {row["state"] for row in validated} == {"VALIDATED"}
    assert str(validated[0]["lines"][0]["unit_price"]) == "2.5500"
    assert len({row["order_id"] for row in validated}) == len(validated)
    assert all(row["reasons"] for row in rows(folder, "FAILED"))
    written = 'write_total{connector="shop-customers",task="0"} 2.0'
    eventually(lambda: written in worker.call("GET", "/metrics").body)
    for name in CONNECTORS:
        assert worker.states(name) == {"connector": "RUNNING", "0": "RUNNING"}
