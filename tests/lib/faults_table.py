"""The tables of what stock clients do with faults and in situations, as docs/faults.md has them.

`python -m tests.lib.faults_table` measures all of it, and prints the page's tables. The clients are
measured side by side, because they mostly wait: each has a broker of its own.
"""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from typing import Final, NamedTuple, Self

from millstream.testing import LocalBroker
from millstream.testing.faults import Faults, Rule
from millstream.testing.situations import Situations
from tests.lib.faulty_clients import CLIENTS, COMMANDS, ROOT, FaultyClient
from tests.lib.waiting import PATIENCE_SECONDS

Arm = Callable[[Faults, str], Rule]
START_SECONDS: Final = 300.0
NOTICE_SECONDS: Final = 15.0
"""A client that notices a topic's new beginning does it within a second; the page has this time."""


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


class Column:
    """One client, a broker of its own, and a new topic for each cell."""

    def __init__(self, name: str, client: FaultyClient, broker: LocalBroker) -> None:
        self.name = name
        self.broker = broker
        self._client = client
        self._numbers = count(1)

    def new_topic(self) -> str:
        """Create a topic, whose name is also that of the cell's group, client or transaction."""
        topic = f"topic-{next(self._numbers)}"
        self.broker.create_topic(topic)
        return topic

    def write(self, topic: str, value: str) -> None:
        """Write a record with librdkafka."""
        from confluent_kafka import Producer

        producer = Producer({**self.broker.client_settings(), "log_level": 2})
        producer.produce(topic, value, partition=0)
        assert producer.flush(PATIENCE_SECONDS) == 0

    def ask(
        self, what: str, topic: str, *words: str, when_ready: Callable[[], object] = lambda: None
    ) -> str:
        """Return what the program of the client sees."""
        where = self.broker.bootstrap_servers
        return self._client.ask(what, where, topic, *words, when_ready=when_ready)

    @contextmanager
    def armed(self, arm: Arm, topic: str) -> Iterator[None]:
        """Arm a fault; raise TimeoutError if nothing has met it at the end."""
        try:
            rule = arm(self.broker.faults, topic)
            yield
            rule.wait_hit()
        finally:  # The next cell has none of it.
            self.broker.faults.clear(allow_unused=True)

    # --- cells of faults ---

    def produced(self, arm: Arm, *, is_idempotent: bool) -> str:
        """Return what the program of a producer saw, and what was written."""
        topic = self.new_topic()
        with self.armed(arm, topic):
            error = self.ask("produce", topic, str(is_idempotent).lower())
        found = len(self.broker.records(topic))
        if not error:
            return {1: "written once", 2: "written twice"}.get(found, f"written {found} times")
        return f"`{error}`, {'written' if found else 'not written'}"

    def consumed(self, arm: Arm) -> str:
        """Return what the program of a consumer saw."""
        topic = self.new_topic()
        self.write(topic, "value")
        with self.armed(arm, topic):
            error, _, value = self.ask("consume", topic, topic).partition("|")
        if not error:
            return "read" if value else "not read"
        return f"`{error}`, {'then read' if value else 'not read'}"

    # --- cells of situations ---

    def member(
        self,
        situation: Callable[[Situations, str], object],
        until: str,
        *,
        may_miss: bool = False,
    ) -> str:
        """Return what a member of a group sees: of the situation, and of the record after it.

        The record is written when the member has asked for the API `until` because of the
        situation, or, if it `may_miss` it, after `NOTICE_SECONDS`.
        """
        topic, requests = self.new_topic(), self.broker.requests
        seconds = NOTICE_SECONDS if may_miss else PATIENCE_SECONDS
        self.write(topic, "first")

        def when_ready() -> None:
            requests.clear()
            situation(self.broker.situations, topic)
            try:
                requests.wait_count(1, seconds, api=until)
            except TimeoutError:
                if not may_miss:
                    raise
            self.write(topic, "second")

        seen = self.ask("member", topic, topic, f"{1.5 * seconds:.0f}", when_ready=when_ready)
        self.broker.faults.clear()
        return seen

    def transacted(self, situation: Callable[[Situations, str], object]) -> str:
        """Return what a transaction sees of the situation, and the one after it."""
        topic = self.new_topic()
        return self.ask(
            "transact",
            topic,
            topic,
            when_ready=lambda: situation(self.broker.situations, topic),
        )

    def topic_created(self) -> str:
        """Return what an administrator sees whose controller is lost."""
        self.broker.situations.controller_is_lost()
        error = self.ask("create", f"created-{next(self._numbers)}")
        self.broker.faults.clear()
        return f"`{error}`" if error else "created"

    def logged_in(self) -> str:
        """Return what a producer sees whose token expires."""
        if self.name not in HAVE_TOKENS:
            return "has none"
        with LocalBroker(security="sasl_plaintext", delegation_token_secret_key="key") as broker:
            made = [*TOKENS, broker.bootstrap_servers, "--command-config", broker.client_file()]
            done = subprocess.run(made, cwd=ROOT, capture_output=True, text=True, check=True)
            token, secret = done.stdout.splitlines()[-1].split()[:2]
            broker.create_topic("orders")
            error = self._client.ask(
                "log_in",
                broker.bootstrap_servers,
                "orders",
                token,
                secret,
                when_ready=broker.situations.tokens_expire,
            )
        return f"`{error}`" if error else "goes on"


HAVE_TOKENS: Final = ("Java", "franz-go")
TOKENS: Final = (
    *(sys.executable, "-m", "broker", "delegation-tokens", "--create"),
    *("--max-life-time-period", "-1", "--bootstrap-server"),
)
Cell = Callable[[Column], str]
SITUATIONS: Final[Mapping[str, Cell]] = {
    "`coordinator_moves(group=...)`": lambda column: column.member(
        lambda each, topic: each.coordinator_moves(group=topic), "FindCoordinator"
    ),
    "`rebalance(group=...)`": lambda column: column.member(
        lambda each, topic: each.rebalance(group=topic), "SyncGroup"
    ),
    "`member_thrown_out(group=...)`": lambda column: column.member(
        lambda each, topic: each.member_thrown_out(group=topic), "SyncGroup"
    ),
    "`sessions_expire()`": lambda column: column.member(
        lambda each, _: each.sessions_expire(), "SyncGroup"
    ),
    "`offset_out_of_range(topic=...)`": lambda column: column.member(
        lambda each, topic: each.offset_out_of_range(topic=topic), "ListOffsets"
    ),
    "`topic_made_anew(...)`": lambda column: column.member(
        lambda each, topic: each.topic_made_anew(topic), "ListOffsets", may_miss=True
    ),
    "`producer_is_fenced(...)`": lambda column: column.transacted(
        lambda each, topic: each.producer_is_fenced(topic)
    ),
    "`transactions_time_out()`": lambda column: column.transacted(
        lambda each, _: each.transactions_time_out()
    ),
    "`leader_changes(topic=...)`": lambda column: column.produced(
        lambda _, topic: column.broker.situations.leader_changes(topic=topic), is_idempotent=True
    ),
    "`quota_is_reached(ms=300, topic=...)`": lambda column: column.produced(
        lambda _, topic: column.broker.situations.quota_is_reached(ms=300, topic=topic),
        is_idempotent=True,
    ),
    "`controller_is_lost()`": Column.topic_created,
    "`tokens_expire()`": Column.logged_in,
}


def _tables() -> dict[str, dict[str, Cell]]:
    def producer(row: Row, *, is_idempotent: bool) -> Cell:
        return lambda column: column.produced(row.arm, is_idempotent=is_idempotent)

    def consumer(row: Row) -> Cell:
        return lambda column: column.consumed(row.arm)

    return {
        "A producer that is idempotent": {
            row.text: producer(row, is_idempotent=True) for row in PRODUCED
        },
        "A producer that is not idempotent": {
            row.text: producer(row, is_idempotent=False) for row in PRODUCED
        },
        "A consumer in a group": {row.text: consumer(row) for row in CONSUMED},
        "Situations": dict(SITUATIONS),
    }


TABLES: Final[Mapping[str, Mapping[str, Cell]]] = _tables()
"""What measures a cell, by heading and by row."""
LANES: Final = (
    ("A producer that is idempotent", "A producer that is not idempotent"),
    ("A consumer in a group", "Situations"),
)
"""The headings that are measured one after another."""
Place = tuple[str, str]
Cells = Mapping[Place, str | Exception]
"""What was measured, or how it failed, by heading and row."""


def _measured(name: str, headings: Sequence[str], all_run: threading.Barrier) -> Cells:
    cells: dict[Place, str | Exception] = {}
    with (
        FaultyClient(COMMANDS[name]()) as client,
        LocalBroker(group_min_session_timeout_ms=1_000) as broker,
    ):
        column = Column(name, client, broker)
        # Programs that start take the time that others have for a request.
        column.ask("produce", column.new_topic(), "true")
        all_run.wait(START_SECONDS)
        for heading in headings:
            for text, cell_of in TABLES[heading].items():
                try:
                    cells[heading, text] = cell_of(column)
                except Exception as failed:  # noqa: BLE001 - the test of the cell raises it
                    broker.faults.clear(allow_unused=True)
                    cells[heading, text] = failed
    return cells


class Measured:
    """All cells, which are measured side by side from the beginning of the block."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(len(CLIENTS) * len(LANES))
        self._cells: dict[Place, Future[Cells]] = {}
        self._all_run = threading.Barrier(len(CLIENTS) * len(LANES))

    def __enter__(self) -> Self:
        for name in CLIENTS:
            for lane in LANES:
                future = self._threads.submit(_measured, name, lane, self._all_run)
                self._cells |= {(name, heading): future for heading in lane}
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(cancel_futures=True)

    def cell(self, heading: str, text: str, client: str) -> str:
        """Return a cell when it is there; raise what went wrong there."""
        found = self._cells[client, heading].result()[heading, text]
        if isinstance(found, Exception):
            raise found
        return found


def read_page(text: str) -> dict[tuple[str, str, str], str]:
    """Return the cells of the page, by heading, row and client."""
    cells: dict[tuple[str, str, str], str] = {}
    heading, clients = "", []
    for line in text.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif line.startswith("| | "):
            clients = [each.strip() for each in line.strip("| ").split("|")]
        elif line.startswith("| `"):
            text, *row = [each.strip() for each in line.strip("| ").split("|")]
            cells |= {(heading, text, name): cell for name, cell in zip(clients, row, strict=True)}
    return cells


def main() -> None:
    """Measure and print all tables."""
    with Measured() as measured:
        for heading, rows in TABLES.items():
            print(f"## {heading}\n\n| | {' | '.join(CLIENTS)} |")
            print("|---" * (len(CLIENTS) + 1) + "|")
            for text in rows:
                cells = [measured.cell(heading, text, client) for client in CLIENTS]
                print(f"| {text} | {' | '.join(cells)} |", flush=True)
            print()


if __name__ == "__main__":
    main()
