"""A worker's settings, under Kafka Connect's names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from common.credentials.translation import is_security
from connect.local_files import SETTING as ALLOWED_DIRECTORIES
from connect.worker.client_settings import with_prefix
from millstream.connect.config.config_def import NO_DEFAULT_VALUE, ConfigDef
from millstream.connect.config.types import Importance, Type
from millstream.connect.config.validators import (
    CaseInsensitiveValidString,
    ListSize,
    Range,
    ValidString,
)

_Setting = tuple[str, Type, Any, str]

EXACTLY_ONCE: Final = "exactly.once.source.support"
_COMMON: Final[tuple[_Setting, ...]] = (
    ("bootstrap.servers", Type.LIST, "localhost:9092", "The brokers to begin with."),
    ("key.converter", Type.STRING, NO_DEFAULT_VALUE, "The converter of keys."),
    ("value.converter", Type.STRING, NO_DEFAULT_VALUE, "The converter of values."),
    (
        "header.converter",
        Type.STRING,
        "org.apache.kafka.connect.storage.SimpleHeaderConverter",
        "The converter of headers.",
    ),
    ("client.id", Type.STRING, "", "What clients call themselves."),
    ("listeners", Type.LIST, "http://127.0.0.1:8083", "Where REST is served; loopback only."),
    ("rest.advertised.host.name", Type.STRING, None, "Where other workers reach this one."),
    ("rest.advertised.port", Type.INT, None, "The port at which they do."),
    ("rest.advertised.listener", Type.STRING, None, "The protocol by which they do."),
    ("allowed.hosts", Type.LIST, "", "Names that clients reach REST by, besides its own; *: all."),
    (
        "access.control.allow.origin",
        Type.STRING,
        "",
        "Origins whose pages may call REST, with commas between; *: all.",
    ),
    (
        "rest.basic.auth.credentials",
        Type.PASSWORD,
        None,
        "`user:password` pairs, with commas between; without it REST asks nobody who they are.",
    ),
    ("plugin.path", Type.LIST, "", "Folders with plugins."),
    ("config.providers", Type.LIST, "", "Names of config providers."),
    (
        ALLOWED_DIRECTORIES,
        Type.LIST,
        "",
        "The directories whose files connectors may read and write; without it there are none.",
    ),
    ("offset.flush.interval.ms", Type.LONG, 60_000, "How often offsets are kept."),
    ("offset.flush.timeout.ms", Type.LONG, 5_000, "How long keeping them may take."),
    (
        "task.shutdown.graceful.timeout.ms",
        Type.LONG,
        5_000,
        "How long a task may take to stop; then it is left behind.",
    ),
    (
        "tasks.isolation",
        Type.STRING,
        "thread",
        "Where tasks run: each in a thread of the worker, or each in a process of its own, so that "
        "several cores are used.",
    ),
    ("topic.creation.enable", Type.BOOLEAN, True, "Whether connectors may create topics."),
    ("topic.tracking.enable", Type.BOOLEAN, True, "Whether used topics are kept in mind."),
    ("topic.tracking.allow.reset", Type.BOOLEAN, True, "Whether users may have them forgotten."),
    (
        "connector.client.config.override.policy",
        Type.STRING,
        "All",
        "Which settings of clients connectors may override: All, Principal, Allowlist or None.",
    ),
)
_STANDALONE: Final[tuple[_Setting, ...]] = (
    (
        "offset.storage.file.filename",
        Type.STRING,
        NO_DEFAULT_VALUE,
        "The file in which sources' offsets are kept.",
    ),
)
_DISTRIBUTED: Final[tuple[_Setting, ...]] = (
    ("group.id", Type.STRING, NO_DEFAULT_VALUE, "The group of workers; no consumer group's name."),
    ("config.storage.topic", Type.STRING, NO_DEFAULT_VALUE, "The topic of configurations."),
    ("config.storage.replication.factor", Type.SHORT, 3, "Its replicas, -1: the broker's."),
    ("offset.storage.topic", Type.STRING, NO_DEFAULT_VALUE, "The topic of sources' offsets."),
    ("offset.storage.replication.factor", Type.SHORT, 3, "Its replicas, -1: the broker's."),
    ("offset.storage.partitions", Type.INT, 25, "Its partitions, -1: the broker's number."),
    ("status.storage.topic", Type.STRING, NO_DEFAULT_VALUE, "The topic of what is shown."),
    ("status.storage.replication.factor", Type.SHORT, 3, "Its replicas, -1: the broker's."),
    ("status.storage.partitions", Type.INT, 5, "Its partitions, -1: the broker's number."),
    ("session.timeout.ms", Type.INT, 10_000, "After how much silence a worker is given up."),
    ("heartbeat.interval.ms", Type.INT, 3_000, "How often a worker says that it lives."),
    ("rebalance.timeout.ms", Type.INT, 60_000, "How long workers may take to rejoin."),
    (
        "scheduled.rebalance.max.delay.ms",
        Type.INT,
        300_000,
        "How long what a lost worker ran waits for it to come back.",
    ),
    ("inter.worker.key.ttl.ms", Type.INT, 3_600_000, "How long a session key is used."),
    (
        EXACTLY_ONCE,
        Type.STRING,
        "disabled",
        "Whether sources write their records and offsets in transactions: on every worker first "
        "preparing, then enabled (KIP-618).",
    ),
)
_VALIDATORS: Final[dict[str, Any]] = {
    "offset.flush.interval.ms": Range(0),
    "offset.flush.timeout.ms": Range(0),
    "task.shutdown.graceful.timeout.ms": Range(0),
    "config.providers": ListSize(100),
    "tasks.isolation": ValidString("thread", "process"),
    "connect.protocol": ValidString("compatible", "sessioned"),
    EXACTLY_ONCE: CaseInsensitiveValidString("disabled", "preparing", "enabled"),
}


def _definition(*settings: _Setting) -> ConfigDef:
    definition = ConfigDef()
    for name, kind, default, doc in settings:
        validator = _VALIDATORS.get(name)
        definition.define(name, kind, Importance.MEDIUM, doc, default=default, validator=validator)
    return definition


STANDALONE: Final = _definition(*_COMMON, *_STANDALONE)
DISTRIBUTED: Final = _definition(
    *_COMMON,
    *_DISTRIBUTED,
    ("connect.protocol", Type.STRING, "sessioned", "How workers share the work."),
)


@dataclass(frozen=True)
class WorkerSettings:
    """The content of the properties file, as written and as parsed."""

    written: Mapping[str, str | None]
    parsed: Mapping[str, Any]

    @classmethod
    def of(cls, written: Mapping[str, str | None], *, is_distributed: bool) -> "WorkerSettings":
        """Raises ConfigException for a missing or an invalid setting."""
        definition = DISTRIBUTED if is_distributed else STANDALONE
        return cls(written, definition.parse(written))

    def __getitem__(self, name: str) -> Any:
        return self.parsed[name]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(self.parsed["bootstrap.servers"])

    @property
    def is_exactly_once(self) -> bool:
        """True if sources write in transactions."""
        return self._exactly_once() == "enabled"

    @property
    def leader_transactional_id(self) -> str | None:
        """The transactional id of the leader's producer; None: the leader uses no transactions."""
        if self._exactly_once() == "disabled":
            return None
        return f"connect-cluster-{self.parsed['group.id']}"

    def _exactly_once(self) -> str:
        return str(self.parsed.get(EXACTLY_ONCE, "disabled")).lower()

    def client(self) -> dict[str, str | None]:
        """Return the settings of the worker's own clients: address, protocol, credentials."""
        inherited = {name: value for name, value in self.written.items() if is_security(name)}
        return {**inherited, "bootstrap.servers": self.bootstrap_servers}

    def client_of_tasks(self, kind: str) -> dict[str, str | None]:
        """Return the settings of tasks' clients, which a connector may override."""
        return {
            "bootstrap.servers": self.bootstrap_servers,
            **with_prefix(self.written, f"{kind}."),
        }

    def converter(self, part: str) -> tuple[str, dict[str, str | None]]:
        """Return a converter's name and settings; `part` is key, value or header."""
        name = f"{part}.converter"
        return self.parsed[name], with_prefix(self.written, f"{name}.")
