"""Two clusters, a mirror between them, a link to be cut, and who writes all the while.

The source has three brokers and keeps everything three times; the target is one broker that is
reached by a link. Each topic has its own way to be changed under the mirror's hands: `orders` gets
partitions, `again` is deleted and made again, `states` is compacted, `short` loses its old records.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path

from common.kafka.admin.client import AdminClient
from common.kafka.admin.configs import Resource, ResourceType, alter
from common.kafka.admin.leaders import EARLIEST, list_offsets, successes
from common.kafka.admin.settings import AdminSettings
from common.kafka.admin.topics import create_topic, topic_leaders
from common.kafka.topics import TopicPartition
from millstream.mirror import RemoteClusterUtils
from millstream.processes.cluster_layout import free_ports
from millstream.testing import LocalBroker, LocalCluster
from millstream.testing.links import Links
from mirror.cluster import MirrorCluster
from mirror.dedicated.whole_topic import whole_topic
from tests.lib.connect_worker import eventually
from tests.lib.mirror_process import MirrorProcess, consume_some, properties_file
from tests.mirror.faults.load import Load

GROUP = "readers"
READ_BY_GROUP = 100
PATIENCE_SECONDS = 90
SESSION_MS = "3000"
LOOK_SECONDS = 0.25
"""Most of what is waited for is found by reading a whole topic."""
_MIRROR, _TARGET = 1, 2
_SETTINGS = {
    # A producer that still writes to a deleted topic would create it again.
    "auto.create.topics.enable": "false",
    "log.cleaner.backoff.ms": "200",
    "log.retention.check.interval.ms": "300",
    # Others are told after half a second at the latest that a broker is gone.
    "broker.session.timeout.ms": "3000",
}
SMALL_SEGMENTS = {"segment.ms": "300"}
TOPICS: dict[str, dict[str, str]] = {
    "orders": {},
    "again": {},
    "states": {**SMALL_SEGMENTS, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
    "short": SMALL_SEGMENTS,
}

Copied = list[tuple[int, int]]
"""Offsets in a partition of the copy, and the numbers that are there."""


class World:
    """Owns the clusters, the mirror and the loads."""

    def __init__(self, folder: Path, *, is_exactly_once: bool) -> None:
        self.is_exactly_once = is_exactly_once
        self.source = LocalCluster(3, has_links=False, **_SETTINGS)
        self._links = Links()
        real, _ = islice(free_ports(), 2)
        self._linked = self._links.add(_MIRROR, _TARGET, ("127.0.0.1", real))
        self.target = LocalBroker(
            listeners=f"PLAINTEXT://127.0.0.1:{real}",
            **{
                "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self._linked}",
                # A mirror that was killed is a member for so long, and the next one waits for it.
                "group.min.session.timeout.ms": SESSION_MS,
            },
        )
        self._folder = folder
        self.loads: dict[str, Load] = {}
        self.earlier: list[list[int]] = []
        """What was written to each `again` that is gone."""
        self.lost_to_retention: list[tuple[int, int]] = []
        """Of `short`: how many were copied, and where its log began when they had gone."""
        self.read_by_group: list[int] = []

    @contextmanager
    def running(self) -> Iterator["World"]:
        with ExitStack() as stack:
            stack.callback(self._links.close)
            stack.enter_context(self.source)
            stack.enter_context(self.target)
            for topic in TOPICS:
                self.make_topic(topic)
            self.mirror = MirrorProcess(self._properties())
            stack.enter_context(self.mirror)
            for topic in TOPICS:
                self.loads[topic] = Load(self.servers, topic, 2 if topic == "orders" else 1)
                self.loads[topic].start()
            self.loads["orders"].more(2 * READ_BY_GROUP)
            self.read_by_group = consume_some(self.servers, "orders", GROUP, READ_BY_GROUP)
            yield self

    @property
    def servers(self) -> str:
        return self.source.bootstrap_servers

    @property
    def target_servers(self) -> str:
        """The target as the mirror reaches it."""
        return f"127.0.0.1:{self._linked}"

    def _properties(self) -> Path:
        settings = {
            "a->b.enabled": "true",
            "b.session.timeout.ms": SESSION_MS,
            "b.heartbeat.interval.ms": "500",
            "tasks.max": "2",
            "topics": ",".join(TOPICS),
        }
        if self.is_exactly_once:
            settings["exactly.once.source.support"] = "enabled"
        addresses = {"a": self.servers, "b": self.target_servers}
        return properties_file(self._folder, addresses, settings)

    # --- what faults do ---

    def make_topic(self, topic: str) -> None:
        count = 2 if topic == "orders" else 1
        with self.admin() as admin:
            create_topic(
                admin, topic, partition_count=count, replication_factor=3, configs=TOPICS[topic]
            )

    def change_config(self, topic: str, name: str, value: str) -> None:
        with self.admin() as admin:
            alter(admin, {Resource(ResourceType.TOPIC, topic): {name: value}})

    def leader(self, topic: str) -> int:
        """Name the node that leads a topic's first partition."""
        return self.leaders(topic)[TopicPartition(topic, 0)]

    def leaders(self, topic: str) -> dict[TopicPartition, int]:
        with self.admin() as admin:
            return admin.retry("leaders", lambda: topic_leaders(admin, [topic]), ())

    def admin(self) -> AdminClient:
        """Return a client of the source."""
        return AdminClient(AdminSettings.of(self.servers))

    def cut_link(self) -> None:
        self._links.cut(_MIRROR, _TARGET)

    def heal_link(self) -> None:
        self._links.heal()

    def may_be_lost(self, number: int) -> bool:
        """Tell whether a record of `short`, whose numbers are offsets, was gone before its copy."""
        return any(copied <= number < start for copied, start in self.lost_to_retention)

    # --- what is there ---

    def ids_of(self, topic: str) -> set[str | None]:
        """Ask each broker of the source for a topic's id; None is from one that has no such."""
        found: set[str | None] = set()
        for node in self.source.broker_ids:
            client = {"bootstrap.servers": self.source.address(node)}
            told = MirrorCluster("a", client, PATIENCE_SECONDS).topics([topic]).get(topic)
            found.add(None if told is None else told.topic_id)
        return found

    def start_offset(self, topic: str) -> int:
        at = TopicPartition(topic, 0)
        with self.admin() as admin:
            return successes(list_offsets(admin, [at], EARLIEST))[at].offset

    def source_values(self, topic: str) -> list[int]:
        return [number for each in self._read(self.servers, topic).values() for _, number in each]

    def copies(self, topic: str) -> dict[int, Copied]:
        """Read what is committed of a copy, by partition."""
        return self._read(self.target_servers, f"a.{topic}")

    def copied(self, topic: str) -> list[int]:
        """Give the numbers of a copy, in the order of each partition."""
        return [number for _, each in sorted(self.copies(topic).items()) for _, number in each]

    def _read(self, servers: str, topic: str) -> dict[int, Copied]:
        found: dict[int, Copied] = {}
        client = {"bootstrap.servers": servers, "group.id": "x"}
        for message in whole_topic(client, topic):
            place = found.setdefault(message.partition(), [])
            place.append((message.offset(), int(message.value())))
        return found

    def translated(self) -> dict[int, int]:
        """Give where the group goes on in each partition of the copy of `orders`."""
        told = {"bootstrap.servers": self.target_servers}
        found = RemoteClusterUtils.translate_offsets(told, "a", GROUP)
        return {at.partition: each.offset for at, each in found.items() if at.topic == "a.orders"}

    def wait_until_it_goes_on(self) -> None:
        """Wait until records are copied that are written from now on."""
        for load in (self.loads["orders"], self.loads["again"]):
            load.more(1)
            self.wait(partial(self._is_copied, load.topic, load.last_acknowledged))

    def _is_copied(self, topic: str, number: int) -> bool:
        return number in self.copied(topic)

    def wait(self, check: Callable[[], object]) -> None:
        eventually(check, PATIENCE_SECONDS, LOOK_SECONDS)
