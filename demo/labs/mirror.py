"""Walks with several clusters: failover and back, both ways, hub and spoke, migration."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Final

from demo.labs.mirror_orders import Orders, OrderStream
from demo.labs.mirror_parts import (
    GROUP,
    PRICES,
    TOPIC,
    Mirror,
    Watch,
    make_topic,
    remove_traces,
    write_prices,
)
from demo.labs.steps import StepFailedError, Steps
from millstream.testing import LocalBroker

PRIMARY: Final = "primary"
BACKUP: Final = "backup"
_COPY: Final = f"{PRIMARY}.{TOPIC}"
_BACK: Final = f"{BACKUP}.{TOPIC}"
_OFFSET_LAG_MAX: Final = 100
"""The default distance of records between two offsets that the mirror stores."""


class MirrorWalk(ABC):
    """Base of all walks: it starts the clusters and removes them at the end."""

    started: ClassVar[tuple[str, ...]] = (PRIMARY, BACKUP)

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._orders = Orders()
        self._brokers = {alias: LocalBroker(is_testing=False) for alias in self.started}

    def walk(self) -> None:
        """Do all steps; raise StepFailedError at the first that fails."""
        try:
            names = ", ".join(self._brokers)
            with self._steps.step(f"start clusters with one node each: {names}"):
                for broker in self._brokers.values():
                    broker.start()
            self._walk()
        finally:
            for broker in self._brokers.values():
                broker.close()

    @abstractmethod
    def _walk(self) -> None:
        """Do the steps of this walk; the clusters are running."""

    @property
    def _servers(self) -> Mapping[str, str]:
        return {alias: each.bootstrap_servers for alias, each in self._brokers.items()}

    def _wait_for_copies(self, wanted: Mapping[str, str]) -> None:
        """Wait until each cluster has its topic of copies.

        A consumer of both topics would otherwise rebalance when the second one appears.
        """
        with self._steps.step("the mirror creates the topics for the copies"):
            for alias, topic in wanted.items():
                with Watch(self._servers[alias]) as watch:
                    self._steps.wait_for(
                        lambda: "" if topic in watch.topics() else f"{alias} has no {topic}"  # noqa: B023
                    )

    def _kill(self, alias: str) -> None:
        with self._steps.step(f"kill {alias} (kill -9)"):
            self._brokers[alias].kill()

    def _start_again(self, alias: str) -> None:
        with self._steps.step(f"restart {alias}"):
            self._brokers[alias].start()

    def _require_topics(self, wanted: Mapping[str, list[str]]) -> None:
        """Raise StepFailedError unless each cluster has exactly these topics of the walk."""
        for alias, topics in wanted.items():
            with Watch(self._servers[alias]) as watch:
                found = watch.topics()
            if found != sorted(topics):
                raise StepFailedError(f"{alias} has {found}")
            self._steps.show(f"      {alias} has {' and '.join(found)}")

    def _wait(self, alias: str, topic: str, records: int = 0, offsets: int = 0) -> None:
        """Wait until a topic of a cluster has so many records, and the group such offsets."""
        with Watch(self._servers[alias]) as watch:
            self._steps.wait_for(lambda: watch.lacks(topic, records))
            self._steps.wait_for(lambda: watch.lacks_offsets(topic, offsets))

    def _write(self, alias: str, count: int) -> None:
        with self._steps.step(f"write {count} orders to {alias}"):
            self._orders.write(self._servers[alias], count)

    def _read(self, alias: str, title: str, until: int | None = None) -> int:
        """Consume as the group until so many orders, or all, were read; count repeated ones."""
        wanted = len(self._orders.written) if until is None else until
        with self._steps.step(title):
            again = self._orders.consume(self._servers[alias], wanted)
        self._steps.show(
            f"      {wanted} different orders read in total, {again} of them read again"
        )
        return again


class MirrorFailover(MirrorWalk):
    """A group moves from a killed cluster to its mirror, and back after the restart."""

    def _walk(self) -> None:
        make_topic(self._servers[PRIMARY])
        make_topic(self._servers[BACKUP])
        with Mirror(self._servers, [f"{PRIMARY}->{BACKUP}", f"{BACKUP}->{PRIMARY}"]):
            self._wait_for_copies({PRIMARY: _BACK, BACKUP: _COPY})
            self._write(PRIMARY, 200)
            self._read(PRIMARY, f"group {GROUP} reads the orders")
            with self._steps.step(f"backup has all of them in {_COPY}, and the offsets of {GROUP}"):
                self._wait(BACKUP, _COPY, 200, 200)
            self._write(PRIMARY, 100)
            with self._steps.step("backup has these orders, too"):
                self._wait(BACKUP, _COPY, 300)
            self._kill(PRIMARY)
            self._read(BACKUP, f"{GROUP} continues in backup, in {_COPY}, and skips no order")
            self._write(BACKUP, 100)
            self._read(BACKUP, f"{GROUP} reads these orders from backup")
            self._start_again(PRIMARY)
            with self._steps.step(f"primary gets the orders of backup in {_BACK}"):
                self._wait(PRIMARY, _BACK, 100)
            with self._steps.step(f"primary has the offsets of {GROUP}: the end of both topics"):
                self._wait(PRIMARY, TOPIC, 300, 300)
                self._wait(PRIMARY, _BACK, 100, 100)
            self._write(PRIMARY, 50)
            self._read(PRIMARY, f"{GROUP} returns to primary, and skips no order")


class MirrorBothWays(MirrorWalk):
    """Two clusters with writers mirror each other, and no record is copied back."""

    def _walk(self) -> None:
        make_topic(self._servers[PRIMARY])
        make_topic(self._servers[BACKUP])
        with Mirror(self._servers, [f"{PRIMARY}->{BACKUP}", f"{BACKUP}->{PRIMARY}"]):
            self._write(PRIMARY, 120)
            self._write(BACKUP, 80)
            with self._steps.step("each cluster has the other's orders besides its own"):
                self._wait(BACKUP, _COPY, 120)
                self._wait(PRIMARY, _BACK, 80)
            self._read(PRIMARY, f"group {GROUP} reads all orders in primary")
            with self._steps.step("no order was copied back"):
                self._require_topics({PRIMARY: [TOPIC, _BACK], BACKUP: [TOPIC, _COPY]})


class MirrorHubAndSpoke(MirrorWalk):
    """Two branches (spokes) send orders to the head office (hub), which sends prices to both."""

    HUB: Final = "hub"
    SPOKES: Final = ("north", "south")
    started = (HUB, *SPOKES)

    def _walk(self) -> None:
        hub = self.HUB
        make_topic(self._servers[hub], PRICES)
        flows = [f"{hub}->{spoke}" for spoke in self.SPOKES]
        told = {f"{flow}.topics": PRICES for flow in flows}
        for spoke in self.SPOKES:
            make_topic(self._servers[spoke])
            flows.append(f"{spoke}->{hub}")
            told[f"{spoke}->{hub}.topics"] = TOPIC
        with Mirror(self._servers, flows, told):
            with self._steps.step(f"write 60 prices to {hub}"):
                write_prices(self._servers[hub], 60)
            self._write("north", 120)
            self._write("south", 80)
            with self._steps.step(f"both spokes have the prices in {hub}.{PRICES}"):
                for spoke in self.SPOKES:
                    self._wait(spoke, f"{hub}.{PRICES}", 60)
            with self._steps.step(f"{hub} has the orders of both spokes, in separate topics"):
                self._wait(hub, f"north.{TOPIC}", 120)
                self._wait(hub, f"south.{TOPIC}", 80)
            self._read(hub, f"group {GROUP} reads all orders in {hub}")
            self._kill(hub)
            self._write("north", 30)
            self._write("south", 20)
            self._start_again(hub)
            self._read(hub, f"{hub} gets the missed orders: {GROUP} continues, and skips no order")
            with self._steps.step("no spoke has the other's orders, and no record was copied back"):
                spokes = {spoke: [TOPIC, f"{hub}.{PRICES}"] for spoke in self.SPOKES}
                self._require_topics({hub: [PRICES, f"north.{TOPIC}", f"south.{TOPIC}"], **spokes})


class MirrorMigration(MirrorWalk):
    """A topic and its group move to another cluster with their names, while orders arrive.

    The producer switches to the other cluster after the mirror has copied the last order. So no
    order is lost, none exists twice, and they stay in order.
    """

    def __init__(self, steps: Steps, source: str | None = None) -> None:
        """`source` is the bootstrap server of an existing cluster to move from."""
        super().__init__(steps)
        self._source = source
        self._written_in_primary: list[int] = []
        """The number of orders in each partition."""
        if source is not None:
            del self._brokers[PRIMARY]

    @property
    def _servers(self) -> Mapping[str, str]:
        found = super()._servers
        return found if self._source is None else {PRIMARY: self._source, **found}

    def _walk(self) -> None:
        make_topic(self._servers[PRIMARY])
        try:
            with OrderStream(self._orders, self._servers[PRIMARY]) as stream:
                limit = self._move(stream)
            again = self._read(BACKUP, f"{GROUP} continues in backup, and skips no order")
            if again > limit:
                raise StepFailedError(
                    f"{again} orders were read again, but at most {limit} should be"
                )
            with self._steps.step("backup has every order once, in the written order"):
                with Watch(self._servers[BACKUP]) as watch:
                    is_same = watch.values(TOPIC) == self._orders.by_partition()
                if not is_same:
                    raise StepFailedError("the copy differs from the original")
            self._steps.show(f"      {len(self._orders.written)} orders in total")
        finally:
            if self._source is not None:
                remove_traces(self._source)

    def _move(self, stream: OrderStream) -> int:
        """Do the migration; return how many orders the group may read again."""
        servers = self._servers
        with self._steps.step("a producer writes orders to primary all the time"):
            self._steps.wait_for(lambda: stream.lacks(300))
        self._read(PRIMARY, f"group {GROUP} reads 250 orders", 250)
        told = {"replication.policy.class": "IdentityReplicationPolicy", "topics": TOPIC}
        # The mirror must not write to the old cluster.
        told |= {"offset-syncs.topic.location": "target", "emit.heartbeats.enabled": "false"}
        with Mirror(servers, [f"{PRIMARY}->{BACKUP}"], told):
            with self._steps.step(f"the mirror copies the existing orders to {TOPIC} in backup"):
                self._wait(BACKUP, TOPIC, 300)
            more = len(self._orders.written) + 300
            with self._steps.step("orders arrive during the copying"):
                self._steps.wait_for(lambda: stream.lacks(more))
            self._read(PRIMARY, f"{GROUP} still reads in primary", more - 50)
            with self._steps.step("the producer switches to backup after the last copy"):
                waited_ms = stream.turn(servers[BACKUP], self._wait_for_copy)
            self._steps.show(f"      the producer could not write for {waited_ms:.0f} ms")
            with self._steps.step(f"backup has the offsets of {GROUP}"):
                self._steps.wait_for(self._lacks_offsets)
        self._steps.show("      the mirror has ended: all clients use backup")
        return sum(self._read_again_at_most())

    def _wait_for_copy(self) -> None:
        self._written_in_primary = [len(part) for part in self._orders.by_partition()]
        self._wait(BACKUP, TOPIC, sum(self._written_in_primary))

    def _read_again_at_most(self) -> list[int]:
        """Return, for each partition, the group's lag plus the distance of stored offsets."""
        read = self._orders.read_by_partition()
        behind = (end - at for end, at in zip(self._written_in_primary, read, strict=True))
        return [each + _OFFSET_LAG_MAX for each in behind]

    def _lacks_offsets(self) -> str:
        with Watch(self._servers[BACKUP]) as watch:
            found = watch.offsets(TOPIC)
        read, again = self._orders.read_by_partition(), self._read_again_at_most()
        least = [max(0, at - limit) for at, limit in zip(read, again, strict=True)]
        is_there = all(at >= wanted for at, wanted in zip(found, least, strict=True))
        return "" if is_there and any(found) else f"{GROUP} has {found} and not {least}"
