"""Parses mm2.properties: clusters, the flows between them, workers and connectors. Pure.

    clusters = primary, backup
    primary.bootstrap.servers = ...
    backup.bootstrap.servers = ...
    primary->backup.enabled = true
    primary->backup.topics = orders.*

A flow's setting overrides the setting for all flows. A cluster's settings begin with its alias;
those of one kind of client begin with `alias.consumer.`, `alias.producer.` or `alias.admin.`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from common.credentials.jaas import ALLOWED_URLS, TOKEN_URL
from millstream.connect.errors import ConfigException
from mirror.definitions import CHECKPOINT, HEARTBEAT, SOURCE

Properties = dict[str, str]

_BYTES: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"
_PACKAGE: Final = "org.apache.kafka.connect.mirror"
_CLIENT_KINDS: Final = ("consumer.", "producer.", "admin.")
_CLIENT_SETTINGS: Final = ("bootstrap.servers", "security.protocol", "ssl.", "sasl.")
ALLOWED_DIRECTORIES: Final = "file.allowed.directories"
_STORES: Final = (
    "ssl.truststore.location",
    "ssl.keystore.location",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
)
_SECURITY: Final = ("security.protocol", "ssl.", "sasl.")
_OF_WORKERS: Final = (
    "offset.",
    "config.storage",
    "status.storage",
    "key.converter",
    "value.converter",
    "header.converter",
    "task",
    "worker",
    "replication.policy",
    "config.providers",
    "exactly.once.source.support",
    "rest.",
    "scheduled.rebalance.max.delay.ms",
    "errors.task.restart.max.delay.ms",
)
_OF_CONNECTORS: Final = (
    "replication.policy",
    "config.providers",
    "tasks.max",
    "producer.override.",
    "exactly.once.support",
)
_QUICK_AND_SMALL: Final = {
    # A larger value delays every copy, and fast traffic fills batches anyway.
    "linger.ms": "1",
    # The limit of unacknowledged data of every task.
    "buffer.memory": "8388608",
}
_READ: Final = (
    *("clusters", "listeners", ALLOWED_DIRECTORIES, ALLOWED_URLS),
    *_CLIENT_SETTINGS,
    *_CLIENT_KINDS,
    *_OF_WORKERS,
    *_OF_CONNECTORS,
    "dedicated.mode.enable.internal.rest",
)
"""How the settings begin that are read, beside those of clusters, flows and connectors."""
NAMES: Final = frozenset((*SOURCE.keys, *CHECKPOINT.keys, *HEARTBEAT.keys))
"""The settings of connectors."""
CONNECTORS: Final = (
    "MirrorSourceConnector",
    "MirrorCheckpointConnector",
    "MirrorHeartbeatConnector",
)


class Pair(NamedTuple):
    """A flow from one cluster to another."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}->{self.target}"


@dataclass(frozen=True)
class MirrorMakerSettings:
    """The whole file."""

    written: Mapping[str, str]

    @property
    def clusters(self) -> list[str]:
        """The clusters' aliases. Raises ConfigException when there are fewer than two."""
        names = [each.strip() for each in self.written.get("clusters", "").split(",")]
        found = list(dict.fromkeys(filter(None, names)))
        if len(found) < 2:
            raise ConfigException.of_value(
                "clusters", self.written.get("clusters"), "at least two aliases are needed"
            )
        return found

    def flows(self) -> list[Pair]:
        """Return the flows that are enabled. Raises ConfigException when there is none."""
        clusters = self.clusters
        for name in self.written:
            source, arrow, rest = name.partition("->")
            target = rest.partition(".")[0]
            if arrow and not {source, target} <= set(clusters):
                raise ConfigException(f"{name}: {source}->{target} is not between `clusters`")
        pairs = [Pair(one, other) for one in clusters for other in clusters if one != other]
        found = [each for each in pairs if self._is_true(f"{each}.enabled", default=False)]
        if not found:
            raise ConfigException("No source->target replication flows: `a->b.enabled = true`")
        for alias in sorted({alias for pair in found for alias in pair}):
            if not self._of_cluster(alias).get("bootstrap.servers"):
                raise ConfigException(f'Missing required configuration "{alias}.bootstrap.servers"')
        return found

    def unread(self) -> list[str]:
        """Return the settings that nobody reads: most likely they are misspelled."""
        of_others = tuple(f"{alias}{mark}" for alias in self.clusters for mark in (".", "->"))
        return [
            name
            for name in self.written
            if name not in NAMES and not name.startswith((*_READ, *of_others))
        ]

    def _is_true(self, name: str, *, default: bool) -> bool:
        return self.written.get(name, str(default)).strip().lower() == "true"

    def _behind(self, prefix: str) -> Properties:
        return {
            name.removeprefix(prefix): value
            for name, value in self.written.items()
            if name.startswith(prefix) and name != prefix
        }

    def _beginning(self, prefixes: Iterable[str]) -> Properties:
        wanted = tuple(prefixes)
        return {name: value for name, value in self.written.items() if name.startswith(wanted)}

    def _of_cluster(self, alias: str) -> Properties:
        """Return a cluster's settings; a setting without an alias is valid for each cluster."""
        common = self._beginning((*_CLIENT_SETTINGS, *_CLIENT_KINDS))
        found = {**common, **self._behind(f"{alias}.")}
        # Settings for all clients of a cluster are for each kind of client, as in MirrorMaker 2.
        of_kinds = {
            f"{kind}{name}": value
            for kind in _CLIENT_KINDS
            for name, value in found.items()
            if name.startswith(_SECURITY)
        }
        return {**of_kinds, **found}

    def worker(self, pair: Pair) -> Properties:
        """Return the settings of a flow's worker, whose topics are in the target cluster."""
        source = pair.source
        return {
            "client.id": str(pair),
            "group.id": f"{source}-mm2",
            "offset.storage.topic": f"mm2-offsets.{source}.internal",
            "status.storage.topic": f"mm2-status.{source}.internal",
            "config.storage.topic": f"mm2-configs.{source}.internal",
            "key.converter": _BYTES,
            "value.converter": _BYTES,
            "header.converter": _BYTES,
            **self._beginning(_OF_WORKERS),
            **self._of_cluster(pair.target),
            ALLOWED_DIRECTORIES: self._directories(),
            ALLOWED_URLS: self._token_places(),
        }

    def _token_places(self) -> str:
        """Return the URLs of tokens that this file names, and those that it allows."""
        own = (value for name, value in self.written.items() if name.endswith(TOKEN_URL))
        return ",".join(filter(None, (*own, self.written.get(ALLOWED_URLS, ""))))

    def _directories(self) -> str:
        """Return the directories of the key and trust stores that this file names.

        Connectors may read these files: they get their settings from this file alone.
        """
        stores = (value for name, value in self.written.items() if name.endswith(_STORES))
        own = (value.rpartition("/")[0] or "." for value in stores)
        told = self.written.get(ALLOWED_DIRECTORIES, "").split(",")
        return ",".join(dict.fromkeys(filter(None, (*map(str.strip, told), *own))))

    def connector(self, pair: Pair, name: str) -> Properties:
        """Return the settings of one of a flow's three connectors."""
        found: Properties = {
            "name": name,
            "connector.class": f"{_PACKAGE}.{name}",
            "source.cluster.alias": pair.source,
            "target.cluster.alias": pair.target,
            "enabled": "false",
        }
        found |= {key: value for key, value in self.written.items() if key in NAMES}
        found |= self._beginning(_OF_CONNECTORS)
        for side, alias in (("source", pair.source), ("target", pair.target)):
            for key, value in self._of_cluster(alias).items():
                where = side if key.startswith(_CLIENT_KINDS) else f"{side}.cluster"
                found[f"{where}.{key}"] = value
        if name == CONNECTORS[0]:
            for setting, value in _QUICK_AND_SMALL.items():
                if not any(key.endswith(f"producer.{setting}") for key in found):
                    found.setdefault(f"producer.override.{setting}", value)
        return {**found, **self._behind(f"{pair}."), "name": name}

    def beats_back(self, pair: Pair) -> Properties | None:
        """Return the connector that writes heartbeats into the source of a flow.

        Their copies show in the target that the flow works. None when the opposite flow is
        enabled, which writes them itself, or when heartbeats are turned off.
        """
        back = Pair(pair.target, pair.source)
        emits = self._is_true("emit.heartbeats.enabled", default=True)
        if self._is_true(f"{back}.enabled", default=False) or not self._is_true(
            f"{back}.emit.heartbeats.enabled", default=emits
        ):
            return None
        found = self.connector(back, "MirrorHeartbeatConnector")
        for key, value in self._of_cluster(pair.source).items():
            if key.startswith(_CLIENT_SETTINGS):
                found[f"producer.override.{key}"] = value
        return {**found, "name": f"MirrorHeartbeatConnector.{pair.source}"}
