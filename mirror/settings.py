"""One connector's parsed settings: its flow, its rules, and its clients' settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from connect.worker.client_settings import (
    CONSUMER_DEFAULTS,
    KAFKA_LOG,
    PRODUCER_DEFAULTS,
    librdkafka_settings,
    with_prefix,
)
from millstream.connect.config.config_def import ConfigDef
from millstream.connect.errors import ConfigException
from millstream.mirror.policies import ReplicationPolicy, replication_policy
from mirror.filters import NameFilter, Patterns
from mirror.flow import Flow
from mirror.topics import ConfigRules

_ADDRESS: Final = (
    "bootstrap.servers",
    "client.id",
    "client.dns.lookup",
    "security.",
    "ssl.",
    "sasl.",
)


@dataclass(frozen=True)
class MirrorSettings:
    """The content of a configuration, as written and as parsed."""

    written: Mapping[str, str]
    parsed: Mapping[str, Any]
    policy: ReplicationPolicy

    @classmethod
    def of(cls, definition: ConfigDef, written: Mapping[str, str]) -> "MirrorSettings":
        """Raises ConfigException for a missing or an invalid setting."""
        parsed = definition.parse(written)
        try:
            policy = replication_policy(written)
        except ValueError as error:
            raise ConfigException(str(error)) from error
        return cls(written, parsed, policy)

    def __getitem__(self, name: str) -> Any:
        return self.parsed[name]

    @property
    def source(self) -> str:
        return str(self["source.cluster.alias"])

    @property
    def target(self) -> str:
        return str(self["target.cluster.alias"])

    @property
    def label(self) -> str:
        return f"{self.source}->{self.target}|{self.written.get('name', '')}"

    @property
    def timeout_seconds(self) -> float:
        return float(self["admin.timeout.ms"]) / 1000

    def flow(self) -> Flow:
        """Raises ConfigException for an invalid pattern."""
        return Flow(
            self.source,
            self.target,
            self.policy,
            self.name_filter("topics"),
            bool(self.parsed.get("heartbeats.replication.enabled", True)),
        )

    def name_filter(self, what: str) -> NameFilter:
        """`what` is topics or groups. Raises ConfigException."""
        return NameFilter(
            Patterns.of(what, self[what]), Patterns.of(f"{what}.exclude", self[f"{what}.exclude"])
        )

    def config_rules(self) -> ConfigRules:
        """Raises ConfigException."""
        name = "config.properties.exclude"
        return ConfigRules(Patterns.of(name, self[name]), self["use.defaults.from"] == "source")

    def interval_seconds(self, name: str) -> int | None:
        """Return the interval of a repeated action, None when it is disabled."""
        return int(self[f"{name}.interval.seconds"]) if self[f"{name}.enabled"] else None

    # --- topics of its own ---

    @property
    def offset_syncs_side(self) -> str:
        """Which cluster holds the offset syncs: source or target."""
        return str(self["offset-syncs.topic.location"])

    @property
    def offset_syncs_topic(self) -> str:
        other = self.target if self.offset_syncs_side == "source" else self.source
        return self.policy.offset_syncs_topic(other)

    @property
    def checkpoints_topic(self) -> str:
        return self.policy.checkpoints_topic(self.source)

    # --- clients ---

    def admin(self, side: str, role: str) -> dict[str, Any]:
        return self._client(side, "admin", role, {})

    def consumer(self, side: str, role: str) -> dict[str, Any]:
        # The consumer joins no group, but librdkafka needs a group name. Its prefetch is limited,
        # because every task has its own consumer.
        own = {
            "group.id": "millstream",
            "queued.max.messages.kbytes": "8192",
            # The pause of fetching at that limit; librdkafka's default is a second.
            "fetch.queue.backoff.ms": "5",
        }
        told = self._client(side, "consumer", role, {**CONSUMER_DEFAULTS, **own})
        return {**told, "logger": KAFKA_LOG}

    def producer(self, side: str, role: str) -> dict[str, Any]:
        told = self._client(side, "producer", role, PRODUCER_DEFAULTS)
        return {**told, "logger": KAFKA_LOG}

    def _client(
        self, side: str, kind: str, role: str, defaults: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return a client's settings; `side` is source or target."""
        cluster = with_prefix(self.written, f"{side}.cluster.")
        address = {name: value for name, value in cluster.items() if name.startswith(_ADDRESS)}
        told = {
            **address,
            **_of_kind(self.written, f"{kind}."),
            **_of_kind(self.written, f"{side}.{kind}."),
        }
        if not told.get("bootstrap.servers"):
            raise ConfigException(
                f'Missing required configuration "{side}.cluster.bootstrap.servers" which has no '
                "default value."
            )
        mine = f"{self.label}|{role}"
        own_id = told.pop("client.id", None)
        client_id = mine if own_id is None else f"{own_id}|{mine}"
        return {**defaults, **librdkafka_settings(told), "client.id": client_id}

    @property
    def reads_committed(self) -> bool:
        """True if records of aborted transactions are not copied.

        This is the default of `isolation.level` in librdkafka. MirrorMaker 2 copies such records by
        default.
        """
        told = {
            **with_prefix(self.written, "consumer."),
            **with_prefix(self.written, "source.consumer."),
        }
        return told.get("isolation.level", "read_committed") == "read_committed"


def _of_kind(written: Mapping[str, str], prefix: str) -> dict[str, str | None]:
    """Return the settings for one kind of client; `override.` marks the worker's own."""
    found = with_prefix(written, prefix)
    return {name: value for name, value in found.items() if not name.startswith("override.")}
