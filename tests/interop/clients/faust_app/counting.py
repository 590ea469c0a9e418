"""A Faust app as a user would write one: counts orders by customer in a table with a changelog."""

import os

import faust

app = faust.App(
    "counting",
    broker=[f"kafka://{address}" for address in os.environ["BOOTSTRAP"].split(",")],
    store="memory://",
    topic_partitions=4,
    topic_replication_factor=int(os.environ.get("REPLICAS", "1")),
    table_standby_replicas=int(os.environ.get("STANDBYS", "1")),
    web_enabled=False,
    broker_session_timeout=6,
    broker_heartbeat_interval=1,
)
orders = app.topic("faust-orders", key_type=str, value_type=int, partitions=4)
totals = app.topic("faust-totals", key_type=str, value_type=int, partitions=4)
by_customer = app.Table("by-customer", default=int, partitions=4)


@app.agent(orders)
async def count(stream: faust.Stream[int]) -> None:
    async for customer, amount in stream.items():
        by_customer[customer] += amount
        await totals.send(key=customer, value=by_customer[customer])


if __name__ == "__main__":
    app.main()
