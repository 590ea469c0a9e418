"""The table of what stock clients do with faults, as docs/faults.md has it.

`python -m tests.lib.faults_table` measures all of it, and prints the page's tables.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from millstream.testing import LocalBroker
from millstream.testing.faults import Faults, Rule
from tests.lib.faulty_clients import (
    Aiokafka,
    ConfluentKafka,
    FaultyClient,
    Java,
    KafkaPython,
)

CLIENTS: Final = ("confluent-kafka", "aiokafka", "kafka-python", "Java")
Arm = Callable[[Faults, str], Rule]


class Row(NamedTuple):
    """One fault, armed for the topic that is named."""

    text: str
    arm: Arm


PRODUCED: Final = (
    Row(
        '`error("Produce", "NOT_LEADER_OR_FOLLOWER").once()`',
        lambda f, topic: f.error("Produce", "NOT_LEADER_OR_FOLLOWER", topic=topic).once(),
    ),
    Row(
        '`error("Produce", "TOPIC_AUTHORIZATION_FAILED").once()`',
        lambda f, topic: f.error("Produce", "TOPIC_AUTHORIZATION_FAILED", topic=topic).once(),
    ),
    Row(
        '`delay("Produce", ms=2500).once()`, longer than the client waits',
        lambda f, topic: f.delay("Produce", ms=2_500, topic=topic).once(),
    ),
    Row('`lose_request("Produce").once()`', lambda f, t: f.lose_request("Produce", topic=t).once()),
    Row('`lose_answer("Produce").once()`', lambda f, t: f.lose_answer("Produce", topic=t).once()),
    Row('`close("Produce").once()`', lambda f, t: f.close("Produce", topic=t).once()),
    Row(
        '`close("Produce", after=True).once()`',
        lambda f, topic: f.close("Produce", topic=topic, after=True).once(),
    ),
    Row(
        '`reset("Produce", after=True).once()`',
        lambda f, topic: f.reset("Produce", topic=topic, after=True).once(),
    ),
    Row('`tear("Produce").once()`', lambda f, topic: f.tear("Produce", topic=topic).once()),
    Row(
        '`throttle("Produce", ms=300).once()`',
        lambda f, topic: f.throttle("Produce", ms=300, topic=topic).once(),
    ),
    Row("`black_hole(client_id=...).always()`", lambda f, t: f.black_hole(client_id=t).always()),
    Row('`disk("slow", ms=200).once()`', lambda f, t: f.disk("slow", ms=200, topic=t).once()),
)
CONSUMED: Final = (
    Row(
        '`error("Fetch", "NOT_LEADER_OR_FOLLOWER").once()`',
        lambda f, topic: f.error("Fetch", "NOT_LEADER_OR_FOLLOWER", topic=topic).once(),
    ),
    Row(
        '`error("Fetch", "OFFSET_OUT_OF_RANGE").once()`',
        lambda f, topic: f.error("Fetch", "OFFSET_OUT_OF_RANGE", topic=topic).once(),
    ),
    Row('`lose_answer("Fetch").once()`', lambda f, t: f.lose_answer("Fetch", topic=t).once()),
    Row('`close("Fetch").once()`', lambda f, topic: f.close("Fetch", topic=topic).once()),
    Row('`tear("Fetch").once()`', lambda f, topic: f.tear("Fetch", topic=topic).once()),
    Row("`damage_records().once()`", lambda f, topic: f.damage_records(topic=topic).once()),
    Row(
        '`error("FindCoordinator", "COORDINATOR_NOT_AVAILABLE").once()`',
        lambda f, topic: f.error(
            "FindCoordinator", "COORDINATOR_NOT_AVAILABLE", group=topic
        ).once(),
    ),
    Row(
        '`error("JoinGroup", "NOT_COORDINATOR").once()`',
        lambda f, topic: f.error("JoinGroup", "NOT_COORDINATOR", group=topic).once(),
    ),
    Row(
        '`error("SyncGroup", "REBALANCE_IN_PROGRESS").once()`',
        lambda f, topic: f.error("SyncGroup", "REBALANCE_IN_PROGRESS", group=topic).once(),
    ),
    Row(
        '`error("JoinGroup", "GROUP_AUTHORIZATION_FAILED").always()`',
        lambda f, topic: f.error("JoinGroup", "GROUP_AUTHORIZATION_FAILED", group=topic).always(),
    ),
)


class Bench:
    """A broker, the clients, and a new topic for each cell of the table."""

    def __init__(self, broker: LocalBroker, java: Java) -> None:
        self._broker = broker
        self._clients: dict[str, FaultyClient] = {
            "confluent-kafka": ConfluentKafka(),
            "aiokafka": Aiokafka(),
            "kafka-python": KafkaPython(),
            "Java": java,
        }
        self._topics = 0

    def _new_topic(self) -> str:
        self._topics += 1
        topic = f"topic-{self._topics}"
        self._broker.create_topic(topic)
        return topic

    @contextmanager
    def _armed(self, row: Row, topic: str) -> Iterator[None]:
        """Arm the fault; raise TimeoutError if nothing has met it at the end."""
        try:
            rule = row.arm(self._broker.faults, topic)
            yield
            rule.wait_hit()
        finally:  # The next cell has none of it.
            self._broker.faults.clear(allow_unused=True)

    def produced(self, row: Row, client: str, *, is_idempotent: bool) -> str:
        """Return the cell of a producer: what its program saw, and what was written."""
        broker, topic = self._broker, self._new_topic()
        with self._armed(row, topic):
            error = self._clients[client].produce(
                broker.bootstrap_servers, topic, is_idempotent=is_idempotent
            )
        count = len(broker.records(topic))
        if not error:
            return {1: "written once", 2: "written twice"}.get(count, f"written {count} times")
        return f"`{error}`, {'written' if count else 'not written'}"

    def consumed(self, row: Row, client: str) -> str:
        """Return the cell of a consumer: what its program saw."""
        broker, topic = self._broker, self._new_topic()
        assert not ConfluentKafka().produce(broker.bootstrap_servers, topic, is_idempotent=True)
        with self._armed(row, topic):
            seen = self._clients[client].consume(broker.bootstrap_servers, topic, topic)
        if not seen.error:
            return "read" if seen.has_record else "not read"
        return f"`{seen.error}`, {'then read' if seen.has_record else 'not read'}"


@contextmanager
def bench() -> Iterator[Bench]:
    """Run a broker and the clients."""
    java = Java()
    try:
        with LocalBroker(group_min_session_timeout_ms=1_000) as broker:
            yield Bench(broker, java)
    finally:
        java.close()


Cells = Callable[[Row, str], str]


def tables(bench: Bench) -> dict[str, tuple[tuple[Row, ...], Cells]]:
    """Return each table by its heading: its rows, and what measures a cell."""
    return {
        "A producer that is idempotent": (
            PRODUCED,
            lambda row, client: bench.produced(row, client, is_idempotent=True),
        ),
        "A producer that is not idempotent": (
            PRODUCED,
            lambda row, client: bench.produced(row, client, is_idempotent=False),
        ),
        "A consumer in a group": (CONSUMED, bench.consumed),
    }


def read_page(text: str) -> dict[tuple[str, str, str], str]:
    """Return the cells of the page, by heading, fault and client."""
    cells = {}
    heading, clients = "", []
    for line in text.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif line.startswith("| fault |"):
            clients = [each.strip() for each in line.strip("| ").split("|")][1:]
        elif line.startswith("| `"):
            fault, *row = [each.strip() for each in line.strip("| ").split("|")]
            cells |= {(heading, fault, name): cell for name, cell in zip(clients, row, strict=True)}
    return cells


def main() -> None:
    """Measure and print all tables."""
    with bench() as measured:
        for heading, (rows, cell_of) in tables(measured).items():
            print(f"## {heading}\n\n| fault | {' | '.join(CLIENTS)} |")
            print("|---" * (len(CLIENTS) + 1) + "|")
            for row in rows:
                cells = [cell_of(row, client) for client in CLIENTS]
                print(f"| {row.text} | {' | '.join(cells)} |", flush=True)
            print()


if __name__ == "__main__":
    main()
