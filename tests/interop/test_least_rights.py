"""Every program works with the rights that `rights.yaml` lists, and needs each of them."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from millrace.security.access import KafkaAccess, kafka_access
from millrace.security.rights import programs
from streams.enrichment import LEVELS
from tests.lib.pipeline_processes import Pipeline, call
from tests.lib.programs_with_rights import (
    read_as_spark,
    run_connectors,
    run_load,
    start_streams,
    watch_as_the_demo,
)
from tests.lib.secured_broker import Decision, SecuredBroker, unneeded
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

Lived = tuple[dict[str, list[Decision]], dict[str, str]]
_DENIED = "GroupAuthorizationFailed"

PIPELINE = (
    *("orders", "fraud", "inventory", "order-details", "aggregator", "payments", "email"),
    *("search", "registry"),
)
BESIDE = ("streams", "spark", "connect", "demo", "load")
"""The rights of the mirror are shown in tests/mirror/test_secured_mirror.py."""


@pytest.fixture(scope="module")
def broker() -> Iterator[SecuredBroker]:
    with SecuredBroker(programs()) as running:
        for user, rights in programs().items():
            running.allow(user, rights)
        yield running


@pytest.fixture(scope="module")
def lived(broker: SecuredBroker, tmp_path_factory: pytest.TempPathFactory) -> Lived:
    """Let orders through all programs, with their rights and then without their groups."""
    folder = tmp_path_factory.mktemp("pipeline")
    file_of = broker.broker.client_file

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
        logs = _take_groups(broker, run)
    found: dict[str, list[Decision]] = defaultdict(list)
    for each in broker.decisions():
        found[each.user].append(each)
    return found, logs


@pytest.fixture(scope="module")
def decided(lived: Lived) -> dict[str, list[Decision]]:
    """What was decided about each program while orders went through all of them."""
    return lived[0]


@pytest.fixture(scope="module")
def logs(lived: Lived) -> dict[str, str]:
    """What each program has logged, first with its rights and then without its group."""
    return lived[1]


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


def _take_groups(broker: SecuredBroker, run: Pipeline) -> dict[str, str]:
    """Take the right to be in its group from every program; return what each has logged then."""
    for program in PIPELINE:
        (right,) = (each for each in programs()[program] if each.kind == "group")
        broker.forbid(program, right)
    logs = {program: run.folder / f"{program.replace('-', '_')}.log" for program in PIPELINE}
    for file in logs.values():
        until(lambda file=file: _DENIED in file.read_text(), shown=file.read_text)
    return {program: file.read_text() for program, file in logs.items()}


@pytest.mark.parametrize("program", PIPELINE)
def test_a_program_says_which_right_it_lacks(logs: dict[str, str], program: str) -> None:
    """What the audit says of a right is so: a program without its group is refused."""
    assert _DENIED in logs[program]
