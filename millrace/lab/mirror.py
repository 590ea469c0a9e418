"""Walks between clusters: fail over and back, both ways at once, hub and spoke, moving house."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Final

from millrace.lab.mirror_orders import Orders, OrderStream
from millrace.lab.mirror_parts import (
    GROUP,
    PRICES,
    TOPIC,
    Mirror,
    Watch,
    make_topic,
    remove_traces,
    write_prices,
)
from millrace.lab.steps import StepFailedError, Steps
from millrace.testing import LocalBroker

PRIMARY: Final = "primary"
BACKUP: Final = "backup"
_COPY: Final = f"{PRIMARY}.{TOPIC}"
_BACK: Final = f"{BACKUP}.{TOPIC}"
_OFFSET_LAG_MAX: Final = 100
"""After so many records of a partition an offset is written down, when nothing is said."""


class MirrorWalk(ABC):
    """What all walks have: clusters that are started and gone at the end."""

    started: ClassVar[tuple[str, ...]] = (PRIMARY, BACKUP)

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._orders = Orders()
        self._brokers = {alias: LocalBroker() for alias in self.started}

    def walk(self) -> None:
        """Raises StepFailedError at the first step that does not come true."""
        try:
            names = ", ".join(self._brokers)
            with self._steps.step(f"clusters of one node each are started: {names}"):
                for broker in self._brokers.values():
                    broker.start()
            self._walk()
        finally:
            for broker in self._brokers.values():
                broker.close()

    @abstractmethod
    def _walk(self) -> None:
        """The walk itself; the clusters have been started."""

    @property
    def _servers(self) -> Mapping[str, str]:
        return {alias: each.bootstrap_servers for alias, each in self._brokers.items()}

    def _wait_for_copies(self, wanted: Mapping[str, str]) -> None:
        """Wait until each cluster has a topic of copies: who reads both would start anew for it."""
        with self._steps.step("the mirror makes the topics of copies"):
            for alias, topic in wanted.items():
                with Watch(self._servers[alias]) as watch:
                    self._steps.wait_for(
                        lambda: "" if topic in watch.topics() else f"{alias} has no {topic}"  # noqa: B023
                    )

    def _kill(self, alias: str) -> None:
        with self._steps.step(f"{alias} is killed (kill -9)"):
            self._brokers[alias].kill()

    def _start_again(self, alias: str) -> None:
        with self._steps.step(f"{alias} is started again"):
            self._brokers[alias].start()

    def _require_topics(self, wanted: Mapping[str, list[str]]) -> None:
        """Raises StepFailedError unless each cluster has these topics of ours, and no other."""
        for alias, topics in wanted.items():
            with Watch(self._servers[alias]) as watch:
                found = watch.topics()
            if found != sorted(topics):
                raise StepFailedError(f"{alias} has {found}")
            self._steps.show(f"      {alias} has {' and '.join(found)}")

    def _wait(self, alias: str, topic: str, records: int = 0, offsets: int = 0) -> None:
        """Wait until a topic of a cluster has so many records, and the group read so many."""
        with Watch(self._servers[alias]) as watch:
            self._steps.wait_for(lambda: watch.lacks(topic, records))
            self._steps.wait_for(lambda: watch.lacks_offsets(topic, offsets))

    def _write(self, alias: str, count: int) -> None:
        with self._steps.step(f"{count} orders are written in {alias}"):
            self._orders.write(self._servers[alias], count)

    def _read(self, alias: str, title: str, until: int | None = None) -> int:
        """Read as the group until so many were read, or all; returns how many came again."""
        wanted = len(self._orders.written) if until is None else until
        with self._steps.step(title):
            again = self._orders.consume(self._servers[alias], wanted)
        self._steps.show(f"      {wanted} different orders read in all, {again} of them again now")
        return again


class MirrorFailover(MirrorWalk):
    """A group goes from a cluster that died to its copy, and back when it lives again."""

    def _walk(self) -> None:
        make_topic(self._servers[PRIMARY])
        make_topic(self._servers[BACKUP])
        with Mirror(self._servers, [f"{PRIMARY}->{BACKUP}", f"{BACKUP}->{PRIMARY}"]):
            self._wait_for_copies({PRIMARY: _BACK, BACKUP: _COPY})
            self._write(PRIMARY, 200)
            self._read(PRIMARY, f"group {GROUP} reads them")
            with self._steps.step(f"backup has them all as {_COPY}, and knows where {GROUP} is"):
                self._wait(BACKUP, _COPY, 200, 200)
            self._write(PRIMARY, 100)
            with self._steps.step("backup has those too"):
                self._wait(BACKUP, _COPY, 300)
            self._kill(PRIMARY)
            self._read(BACKUP, f"{GROUP} goes on in backup, on {_COPY}, and skips none")
            self._write(BACKUP, 100)
            self._read(BACKUP, f"{GROUP} reads those there too")
            self._start_again(PRIMARY)
            with self._steps.step(f"it gets what was written in backup, as {_BACK}"):
                self._wait(PRIMARY, _BACK, 100)
            with self._steps.step(f"and where {GROUP} is by now: at the end of both"):
                self._wait(PRIMARY, TOPIC, 300, 300)
                self._wait(PRIMARY, _BACK, 100, 100)
            self._write(PRIMARY, 50)
            self._read(PRIMARY, f"{GROUP} goes back to primary, and skips none")


class MirrorBothWays(MirrorWalk):
    """Two clusters that are written to follow each other, and nothing goes round."""

    def _walk(self) -> None:
        make_topic(self._servers[PRIMARY])
        make_topic(self._servers[BACKUP])
        with Mirror(self._servers, [f"{PRIMARY}->{BACKUP}", f"{BACKUP}->{PRIMARY}"]):
            self._write(PRIMARY, 120)
            self._write(BACKUP, 80)
            with self._steps.step("each has the other's orders besides its own"):
                self._wait(BACKUP, _COPY, 120)
                self._wait(PRIMARY, _BACK, 80)
            self._read(PRIMARY, f"group {GROUP} reads all of them in primary")
            with self._steps.step("nothing has gone round"):
                self._require_topics({PRIMARY: [TOPIC, _BACK], BACKUP: [TOPIC, _COPY]})


class MirrorHubAndSpoke(MirrorWalk):
    """Branches send their orders to the head office, which sends its prices to all of them."""

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
            with self._steps.step(f"{hub} sets 60 prices"):
                write_prices(self._servers[hub], 60)
            self._write("north", 120)
            self._write("south", 80)
            with self._steps.step(f"both spokes have the prices, as {hub}.{PRICES}"):
                for spoke in self.SPOKES:
                    self._wait(spoke, f"{hub}.{PRICES}", 60)
            with self._steps.step(f"{hub} has the orders of both, apart"):
                self._wait(hub, f"north.{TOPIC}", 120)
                self._wait(hub, f"south.{TOPIC}", 80)
            self._read(hub, f"group {GROUP} reads all of them in {hub}")
            self._kill(hub)
            self._write("north", 30)
            self._write("south", 20)
            self._start_again(hub)
            self._read(hub, f"{hub} gets what it missed: {GROUP} goes on, and skips none")
            with self._steps.step("no spoke has what is another's, and nothing has gone round"):
                spokes = {spoke: [TOPIC, f"{hub}.{PRICES}"] for spoke in self.SPOKES}
                self._require_topics({hub: [PRICES, f"north.{TOPIC}", f"south.{TOPIC}"], **spokes})


class MirrorMigration(MirrorWalk):
    """A topic and its group move to another cluster under their names, while orders come in.

    The writer changes to the other cluster when the mirror has copied the last order of this one.
    So no order is lost, none is there twice, and they stay in order.
    """

    def __init__(self, steps: Steps, source: str | None = None) -> None:
        """`source` is the address of a cluster to move from, of any Kafka."""
        super().__init__(steps)
        self._source = source
        self._written_in_primary: list[int] = []
        """How many of each partition."""
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
            again = self._read(BACKUP, f"{GROUP} goes on in backup, and skips none")
            if again > limit:
                raise StepFailedError(f"{again} orders came again, and {limit} at most should")
            with self._steps.step("backup has every order once, in the order they were written"):
                with Watch(self._servers[BACKUP]) as watch:
                    is_same = watch.values(TOPIC) == self._orders.by_partition()
                if not is_same:
                    raise StepFailedError("the copy is another")
            self._steps.show(f"      {len(self._orders.written)} orders in all")
        finally:
            if self._source is not None:
                remove_traces(self._source)

    def _move(self, stream: OrderStream) -> int:
        """Move all; returns how many orders the group may read again."""
        servers = self._servers
        with self._steps.step("orders come in all the while, in primary"):
            self._steps.wait_for(lambda: stream.lacks(300))
        self._read(PRIMARY, f"group {GROUP} reads 250 of them", 250)
        told = {"replication.policy.class": "IdentityReplicationPolicy", "topics": TOPIC}
        # Of the cluster that is left nothing is asked but to be read.
        told |= {"offset-syncs.topic.location": "target", "emit.heartbeats.enabled": "false"}
        with Mirror(servers, [f"{PRIMARY}->{BACKUP}"], told):
            with self._steps.step(f"the mirror copies what is there, and the name stays {TOPIC}"):
                self._wait(BACKUP, TOPIC, 300)
            more = len(self._orders.written) + 300
            with self._steps.step("orders come in while it copies"):
                self._steps.wait_for(lambda: stream.lacks(more))
            self._read(PRIMARY, f"{GROUP} reads on in primary, as if nothing were", more - 50)
            with self._steps.step("who writes turns to backup, when that has the last order"):
                waited_ms = stream.turn(servers[BACKUP], self._wait_for_copy)
            self._steps.show(f"      nobody could write for {waited_ms:.0f} ms")
            with self._steps.step(f"backup knows where {GROUP} is"):
                self._steps.wait_for(self._lacks_offsets)
        self._steps.show("      the mirror has ended: from here on everybody uses backup")
        return sum(self._read_again_at_most())

    def _wait_for_copy(self) -> None:
        self._written_in_primary = [len(part) for part in self._orders.by_partition()]
        self._wait(BACKUP, TOPIC, sum(self._written_in_primary))

    def _read_again_at_most(self) -> list[int]:
        """About as many of each partition as the group was behind its end."""
        read = self._orders.read_by_partition()
        behind = (end - at for end, at in zip(self._written_in_primary, read, strict=True))
        return [each + _OFFSET_LAG_MAX for each in behind]

    def _lacks_offsets(self) -> str:
        with Watch(self._servers[BACKUP]) as watch:
            found = watch.offsets(TOPIC)
        read, again = self._orders.read_by_partition(), self._read_again_at_most()
        least = [max(0, at - limit) for at, limit in zip(read, again, strict=True)]
        is_there = all(at >= wanted for at, wanted in zip(found, least, strict=True))
        return "" if is_there and any(found) else f"{GROUP} is at {found}, and should be at {least}"
