"""Every program works with the rights that `rights.yaml` lists, and needs each of them."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from common.credentials.access import KafkaAccess, kafka_access
from common.kafka.rights import programs
from millstream.processes.cluster_layout import free_ports
from streams.enrichment import LEVELS
from tests.lib.pipeline_processes import Pipeline, Program, call
from tests.lib.programs_with_rights import (
    connectors_command,
    load_command,
    read_as_spark,
    run_connectors,
    run_load,
    start_streams,
    watch_as_the_demo,
)
from tests.lib.right_trials import Start, Trials, tried
from tests.lib.secured_broker import Decision, SecuredBroker, password_of, unneeded
from tests.lib.waiting import until

pytestmark = pytest.mark.interop


class Lived(NamedTuple):
    """What became of orders, of programs without a right, and what was logged meanwhile."""

    decided: dict[str, list[Decision]]
    superfluous: dict[str, list[str]]
    logs: dict[str, str]


PIPELINE = (
    *("orders", "fraud", "inventory", "order-details", "aggregator", "payments", "email"),
    *("search", "registry"),
)
BESIDE = ("streams", "spark", "connect", "demo", "load")
"""The rights of the mirror are shown in tests/mirror/test_secured_mirror.py."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """Programs come with tokens of an issuer, so that this shows those for all of them too."""
    with SecuredBroker(programs(), tmp_path_factory.mktemp("issuer")) as running:
        for user, rights in programs().items():
            running.allow(user, rights)
        yield running


@pytest.fixture(scope="module")
def lived(broker: SecuredBroker, tmp_path_factory: pytest.TempPathFactory) -> Lived:
    """Let orders through all programs with their rights, and then try each without one."""
    folder = tmp_path_factory.mktemp("pipeline")
    file_of = broker.client_file

    def access_of(program: str) -> KafkaAccess:
        return kafka_access(broker.bootstrap_servers, file_of(program))

    with Pipeline(broker.bootstrap_servers, folder, client_file=file_of) as run:
        run.start_all()
        start_streams(run)
        _let_orders_through(run)
        watch_as_the_demo(run, access_of("demo"))
        run_load(run, file_of("load"))
        read_as_spark(run, access_of("spark"))
        run_connectors(run, file_of("connect"))
        _poison_all(run)
        found: dict[str, list[Decision]] = defaultdict(list)
        for each in broker.decisions():
            found[each.user].append(each)
        broker.log_decisions("INFO")
        trials = Trials(broker, folder)
        superfluous = _try_beside(trials, run, file_of) | _try_services(trials, run)
        logs = {file.name: file.read_text() for file in folder.glob("*.log")}
    return Lived(found, superfluous, {**logs, "the broker": broker.broker.log()})


@pytest.fixture(scope="module")
def decided(lived: Lived) -> dict[str, list[Decision]]:
    """What was decided about each program while orders went through all of them."""
    return lived.decided


def _let_orders_through(run: Pipeline) -> None:
    run.put_customers(["anna"])
    run.produce(_customers_of_every_level(run))
    run.put_stock({"tea": 5})
    line = {"product_id": "tea", "quantity": 2, "unit_price": "3.00"}
    answer = run.post({"customer_id": "anna", "lines": [line]})
    assert answer.status == 201, answer
    order_id = answer.body["id"]
    assert run.validated(order_id).body["state"] in ("VALIDATED", "PAID")
    until(lambda: bool(run.read("order-confirmations")))
    until(lambda: order_id in run.documents())
    other = run.post({"customer_id": "anna", "lines": [line]}).body["id"]
    cancelled = call("DELETE", f"{run.urls['orders']}/v1/orders/{other}")
    assert cancelled.status in (202, 409)
    for customer_id in (*LEVELS, "anna", "anna", "anna"):  # Three in a moment are a burst.
        assert run.post({"customer_id": customer_id, "lines": [line]}).status == 201
    for topic in ("orders-bronze", "orders-silver", "orders-gold", "orders-platinum"):
        until(lambda topic=topic: bool(run.read(topic)))
    until(lambda: bool(run.read("order-alerts")))


def _customers_of_every_level(run: Pipeline) -> list[tuple[str, str, bytes]]:
    customer = run.writer("customers", "customers/customer", 2)
    about: dict[str, Any] = {"country": None, "name": "x", "email": "x@example.com"}
    about["updated_at"] = datetime.now(UTC)
    events = [{"customer_id": level, "level": level, **about} for level in LEVELS]
    return [("customers", each["customer_id"], customer.encode(each)) for each in events]


def _poison_all(run: Pipeline) -> None:
    """Put a record that nobody can read into every topic that a service consumes."""
    names = (*PIPELINE, "streams")
    rights = {right.name for name in names for right in programs()[name]}
    dead = [name for name in rights if name.endswith(".dead-letter")]
    poison = [(topic.removesuffix(".dead-letter"), "poison", b"\xff") for topic in dead]
    run.produce(poison)
    for topic in dead:
        until(lambda topic=topic: bool(run.read(topic)))


@pytest.mark.parametrize("program", [*PIPELINE, *BESIDE])
def test_a_program_needs_each_of_its_rights(
    decided: dict[str, list[Decision]], program: str
) -> None:
    assert [str(each) for each in unneeded(decided[program], programs()[program])] == []


# --- one right fewer ---


def _try_beside(trials: Trials, run: Pipeline, file_of: Callable[[str], str]) -> dict[str, Any]:
    """Try the programs that need the services."""
    places = run.folder / "places.json"
    documents = {order_id: list(told) for order_id, told in run.documents().items()}
    about = {"bootstrap_servers": run.bootstrap_servers, "urls": run.urls, "documents": documents}
    numbers = count()

    def as_process(name: str) -> Start:
        def start(log: Path) -> Program:
            told = {**about, "file": file_of(name), "folder": str(run.folder / "as-process")}
            places.write_text(json.dumps(told))
            return Program(log, "tests.lib.one_program", name, str(places))

        return start

    def load(log: Path) -> Program:
        return Program(log, "millstream", "load", *load_command(run, file_of("load")))

    def connect(log: Path) -> Program:
        folder = run.folder / f"connect-{next(numbers)}"
        return Program(log, "connect", *connectors_command(run, file_of("connect"), folder))

    starts = {
        "demo": as_process("demo"),
        "load": load,
        "connect": connect,
        "spark": as_process("spark"),
    }
    return {name: trials.find_unneeded(name, tried(name), start) for name, start in starts.items()}


def _try_services(trials: Trials, run: Pipeline) -> dict[str, Any]:
    """Try what has a group, alone; what others need the topics of comes last."""
    for name in list(run.programs):
        if name != "registry":
            run.end(name)
    port = str(next(free_ports()))

    def start_of(name: str) -> Start:
        module, *arguments = run.command(name.replace("-", "_"))
        own = ("--http-port", port) if name == "orders" else ()
        return lambda log: Program(log, module, *arguments, *own)

    def post() -> None:
        line = {"product_id": "tea", "quantity": 1, "unit_price": "3.00"}
        call("POST", f"http://127.0.0.1:{port}/v1/orders", {"customer_id": "a", "lines": [line]})

    def poison(name: str) -> None:
        dead = [each.name for each in programs()[name] if each.name.endswith(".dead-letter")]
        run.produce((name.removesuffix(".dead-letter"), "poison", b"\xff") for name in dead)

    def post_and_poison() -> None:
        """It reads its topics from their ends."""
        poison("orders")
        post()

    # It passes over poison in the stock levels that it reads at its start.
    acts = {"inventory": lambda: poison("inventory")}
    found: dict[str, Any] = {}
    for name in (*(each for each in PIPELINE if each not in ("orders", "registry")), "streams"):
        found[name] = trials.find_unneeded(name, tried(name), start_of(name), acts.get(name))
    for creates in (False, True):
        rights = [each for each in tried("orders") if (each.operation == "CREATE") is creates]
        # What is produced would create a topic that is missing.
        act = post if creates else post_and_poison
        found["orders"] = found.get("orders", []) + trials.find_unneeded(
            "orders", rights, start_of("orders"), act
        )
    registry = run.urls["registry"]
    run.end("registry")
    found["registry"] = trials.find_unneeded(
        "registry",
        tried("registry"),
        start_of("registry"),
        lambda: call("POST", f"{registry}/subjects/x/versions", {"schema": '"string"'}),
    )
    return found


@pytest.mark.parametrize("program", [*PIPELINE, *BESIDE])
def test_a_program_fails_with_one_right_fewer(lived: Lived, program: str) -> None:
    assert lived.superfluous[program] == []


def test_no_secret_of_a_client_and_no_token_is_logged(lived: Lived) -> None:
    assert len(lived.logs) > len(PIPELINE)
    secrets = {password_of(program) for program in programs()}
    for name, text in lived.logs.items():
        assert not any(secret in text for secret in secrets), name
        # How every signed JWT begins.
        assert "eyJ" not in text, name
