"""Walks between two clusters: fail over and back, both ways at once, and moving house."""

from typing import Final

from millrace.lab.mirror_parts import GROUP, TOPIC, Mirror, Orders, Watch, make_topic
from millrace.lab.steps import StepFailedError, Steps
from millrace.testing import LocalBroker

PRIMARY: Final = "primary"
BACKUP: Final = "backup"
_COPY: Final = f"{PRIMARY}.{TOPIC}"
_BACK: Final = f"{BACKUP}.{TOPIC}"


class MirrorWalk:
    """What all walks have: two clusters that are started and gone at the end."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._orders = Orders()
        self._primary, self._backup = LocalBroker(), LocalBroker()

    def walk(self) -> None:
        """Raises StepFailedError at the first step that does not come true."""
        try:
            with self._steps.step("two clusters of one node are started: primary and backup"):
                self._primary.start()
                self._backup.start()
            self._walk()
        finally:
            self._primary.close()
            self._backup.close()

    def _walk(self) -> None:
        raise NotImplementedError

    @property
    def _servers(self) -> dict[str, str]:
        return {
            PRIMARY: self._primary.bootstrap_servers,
            BACKUP: self._backup.bootstrap_servers,
        }

    def _wait(self, alias: str, topic: str, records: int = 0, offsets: int = 0) -> None:
        """Wait until a topic of a cluster has so many records, and the group read so many."""
        with Watch(self._servers[alias]) as watch:
            self._steps.wait_for(lambda: watch.lacks(topic, records))
            self._steps.wait_for(lambda: watch.lacks_offsets(topic, offsets))

    def _write(self, alias: str, count: int) -> None:
        with self._steps.step(f"{count} orders are written in {alias}"):
            self._orders.write(self._servers[alias], count)

    def _read(self, alias: str, title: str, until: int | None = None) -> None:
        wanted = len(self._orders.written) if until is None else until
        with self._steps.step(title):
            again = self._orders.consume(self._servers[alias], wanted)
        self._steps.show(f"      {wanted} different orders read in all, {again} of them again now")


class MirrorFailover(MirrorWalk):
    """A group goes from a cluster that died to its copy, and back when it lives again."""

    def _walk(self) -> None:
        make_topic(self._servers[PRIMARY])
        make_topic(self._servers[BACKUP])
        with Mirror(self._servers, [f"{PRIMARY}->{BACKUP}", f"{BACKUP}->{PRIMARY}"]):
            self._write(PRIMARY, 200)
            self._read(PRIMARY, f"group {GROUP} reads them")
            with self._steps.step(f"backup has them all as {_COPY}, and knows where {GROUP} is"):
                self._wait(BACKUP, _COPY, 200, 200)
            self._write(PRIMARY, 100)
            with self._steps.step("backup has those too"):
                self._wait(BACKUP, _COPY, 300)
            with self._steps.step("primary is killed (kill -9)"):
                self._primary.kill()
            self._read(BACKUP, f"{GROUP} goes on in backup, on {_COPY}, and skips none")
            self._write(BACKUP, 100)
            self._read(BACKUP, f"{GROUP} reads those there too")
            with self._steps.step("primary is started again"):
                self._primary.start()
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
                for alias, other in ((PRIMARY, _BACK), (BACKUP, _COPY)):
                    with Watch(self._servers[alias]) as watch:
                        found = watch.topics()
                    if found != sorted([other, TOPIC]):
                        raise StepFailedError(f"{alias} has {found}")
                    self._steps.show(f"      {alias} has {' and '.join(found)}")


class MirrorMigration(MirrorWalk):
    """A topic and its group move to another cluster under their names, while orders come in."""

    def __init__(self, steps: Steps, source: str | None = None) -> None:
        """`source` is the address of a cluster to move from, of any Kafka."""
        super().__init__(steps)
        self._source = source

    @property
    def _servers(self) -> dict[str, str]:
        found = super()._servers
        return found if self._source is None else {**found, PRIMARY: self._source}

    def _walk(self) -> None:
        make_topic(self._servers[PRIMARY])
        self._write(PRIMARY, 500)
        self._read(PRIMARY, f"group {GROUP} reads 400 of them", 400)
        flows, policy = [f"{PRIMARY}->{BACKUP}"], "IdentityReplicationPolicy"
        with Mirror(self._servers, flows, replication_policy_class=policy, topics=TOPIC):
            with self._steps.step(f"the mirror copies what is there, and the name stays {TOPIC}"):
                self._wait(BACKUP, TOPIC, 500, 200)
            self._write(PRIMARY, 300)
            self._read(PRIMARY, f"{GROUP} reads 700 of the 800 there, as if nothing were", 700)
            with self._steps.step(f"backup has them all, and knows where {GROUP} is"):
                self._wait(BACKUP, TOPIC, 800, 500)
        self._steps.show("      the mirror has ended: from here on everybody uses backup")
        self._write(BACKUP, 200)
        self._read(BACKUP, f"{GROUP} goes on in backup, and skips none")
