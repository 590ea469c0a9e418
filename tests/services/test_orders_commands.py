"""Commands about orders, over REST: cancel and ship, and what they meet on their way."""

from aiokafka.errors import KafkaTimeoutError

from tests.services.test_orders_rest import GOOD, Node, problem, with_node


async def states_of(one: Node, order_id: str) -> list[str]:
    history = await (await one.client.get(f"/v1/orders/{order_id}/events")).json()
    return [event["state"] for event in history["events"]]


def test_order_is_cancelled_once_and_stays_so() -> None:
    async def check(one: Node) -> None:
        order = await (await one.client.post("/v1/orders", json=GOOD)).json()
        path = f"/v1/orders/{order['id']}"
        taken = await one.client.delete(path)
        assert (taken.status, taken.headers["Location"]) == (202, path)
        await one.catch_up()
        assert (await (await one.client.get(path)).json())["state"] == "CANCELLED"
        await problem(await one.client.delete(path), 409)
        await one.decide(order["id"])
        assert await states_of(one, order["id"]) == ["CREATED", "CANCELLED"]

    with_node(check)


def test_two_cancellations_on_their_way_make_one_event() -> None:
    async def check(one: Node) -> None:
        order = await (await one.client.post("/v1/orders", json=GOOD)).json()
        for _ in range(2):
            assert (await one.client.delete(f"/v1/orders/{order['id']}")).status == 202
        await one.catch_up()
        assert await states_of(one, order["id"]) == ["CREATED", "CANCELLED"]

    with_node(check)


def test_decision_and_cancellation_in_one_batch_are_two_events_in_order() -> None:
    async def check(one: Node) -> None:
        order = await (await one.client.post("/v1/orders", json=GOOD)).json()
        assert (await one.client.delete(f"/v1/orders/{order['id']}")).status == 202
        await one.decide(order["id"])
        assert await states_of(one, order["id"]) == ["CREATED", "VALIDATED", "CANCELLED"]

    with_node(check)


def test_cancellation_that_a_failure_overtakes_changes_nothing() -> None:
    async def check(one: Node) -> None:
        order = await (await one.client.post("/v1/orders", json=GOOD)).json()
        assert (await one.client.delete(f"/v1/orders/{order['id']}")).status == 202
        await one.decide(order["id"], "FAILED")
        assert await states_of(one, order["id"]) == ["CREATED", "FAILED"]

    with_node(check)


def test_command_belongs_to_the_trace_of_the_order() -> None:
    async def check(one: Node) -> None:
        order = await (await one.client.post("/v1/orders", json=GOOD)).json()
        await one.client.delete(f"/v1/orders/{order['id']}")
        await one.catch_up()
        traces = [dict(record.headers)["traceparent"] for record in one.instance.bus.all("orders")]
        assert [trace.split(b"-")[1].decode() for trace in traces] == [order["correlation_id"]] * 2

    with_node(check)


def test_only_a_paid_order_can_be_shipped() -> None:
    async def check(one: Node) -> None:
        order = await (await one.client.post("/v1/orders", json=GOOD)).json()
        await problem(await one.client.post(f"/v1/orders/{order['id']}/shipment"), 409)
        await problem(await one.client.post("/v1/orders/none/shipment"), 404)

    with_node(check)


def test_command_that_cannot_be_stored_is_refused_with_503() -> None:
    async def check(one: Node) -> None:
        order = await (await one.client.post("/v1/orders", json=GOOD)).json()
        one.processor.failure = KafkaTimeoutError()
        await problem(await one.client.delete(f"/v1/orders/{order['id']}"), 503)

    with_node(check)
