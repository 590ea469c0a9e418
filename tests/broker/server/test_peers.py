"""Requests to other brokers: connections by address, and entries that share a request."""

from types import SimpleNamespace
from typing import Any, NamedTuple, cast

from broker.server.peers import Batches, Peers
from tests.lib.served_replica import SimulatedLoop

LISTENER = "INTERNAL"


class Entry(NamedTuple):
    key: str
    size: int = 1


class Connection:
    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self.asked: list[tuple[Any, Any]] = []
        self.is_closed = False

    def ask(self, request: Any, api_version: int, timeout_ms: int, on_answer: Any) -> None:
        self.asked.append((request, on_answer))

    def answer(self, answer: Any = "answer") -> None:
        self.asked.pop(0)[1](answer)

    def close(self) -> None:
        self.is_closed = True


class Cluster:
    """Broker 1 is alive, at port 9."""

    def __init__(self, *, gathers: bool = False) -> None:
        self.loop = SimulatedLoop()
        self.brokers = {1: SimpleNamespace(is_fenced=False, endpoints={LISTENER: ("host", 9)})}
        self.connections: list[Connection] = []
        self.answers: list[Any] = []
        metadata: Any = SimpleNamespace(image=SimpleNamespace(brokers=self.brokers))
        self.peers = Peers(cast(Any, self.loop), metadata, cast(Any, self.connect), LISTENER)
        self.batches = Batches[Entry](
            self.peers,
            lambda entries: (cast(Any, [entry.key for entry in entries]), 0),
            lambda entries, answer: self.answers.append(([each.key for each in entries], answer)),
            timeout_ms=1_000,
            max_entries=3,
            max_size=3,
            gathers=gathers,
        )

    def connect(self, address: tuple[str, int]) -> Connection:
        self.connections.append(Connection(address))
        return self.connections[-1]

    def ask(self, broker_id: int) -> None:
        self.peers.ask(broker_id, cast(Any, "request"), 0, 1_000, self.answers.append)

    def put(self, *entries: Entry, lane: str = "") -> None:
        for entry in entries:
            self.batches.put(1, entry, lane)

    @property
    def under_way(self) -> list[Any]:
        return [request for request, _ in self.connections[-1].asked]


def test_a_broker_that_is_not_alive_gives_no_answer() -> None:
    cluster = Cluster()
    cluster.ask(2)
    assert cluster.answers == []
    cluster.loop.advance()
    assert cluster.answers == [None]


def test_a_broker_with_another_address_is_not_waited_for() -> None:
    cluster = Cluster()
    cluster.ask(1)
    cluster.brokers[1].endpoints[LISTENER] = ("host", 10)
    cluster.peers.on_brokers_changed()
    assert cluster.answers == []
    assert cluster.connections[0].is_closed
    cluster.loop.advance()
    assert cluster.answers == [None]
    cluster.connections[0].answer()
    assert cluster.answers == [None]
    cluster.ask(1)
    assert [each.address[1] for each in cluster.connections] == [9, 10]


def test_a_request_has_the_entries_that_fit_and_one_of_each_key() -> None:
    cluster = Cluster()
    cluster.put(Entry("first"))
    cluster.put(Entry("a", 2), Entry("b", 2), Entry("c"), Entry("a"), Entry("large", 9))
    assert cluster.under_way == [["first"]]
    for expected in (["a", "c"], ["b", "a"], ["large"]):
        cluster.connections[0].answer()
        assert cluster.under_way == [expected]
    cluster.connections[0].answer()
    assert cluster.under_way == []
    assert [keys for keys, _ in cluster.answers] == [["first"], ["a", "c"], ["b", "a"], ["large"]]


def test_a_request_has_at_most_so_many_entries() -> None:
    cluster = Cluster(gathers=True)
    cluster.put(*(Entry(name, 0) for name in "abcd"))
    cluster.loop.advance()
    assert cluster.under_way == [["a", "b", "c"]]


def test_lanes_do_not_wait_for_each_other() -> None:
    cluster = Cluster(gathers=True)
    cluster.put(Entry("a"), lane="read")
    cluster.put(Entry("a"), lane="write")
    assert not cluster.connections
    cluster.loop.advance()
    assert cluster.under_way == [["a"], ["a"]]


def test_entries_for_a_broker_that_is_gone_have_no_answer() -> None:
    cluster = Cluster()
    cluster.put(Entry("a"), Entry("b"))
    cluster.brokers[1].is_fenced = True
    cluster.peers.on_brokers_changed()
    cluster.loop.advance()
    assert cluster.answers == [(["a"], None), (["b"], None)]
