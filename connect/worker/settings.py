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
_REPLICAS: Final = (
    "The replication factor of {}.storage.topic when a worker creates it; -1 means the broker's "
    "default."
)
_PARTITIONS: Final = (
    "The partitions of {}.storage.topic when a worker creates it; -1 means the broker's default."
)
_COMMON: Final[tuple[_Setting, ...]] = (
    (
        "bootstrap.servers",
        Type.LIST,
        "localhost:9092",
        "The brokers that a client connects to first, as host:port with commas between.",
    ),
    (
        "key.converter",
        Type.STRING,
        NO_DEFAULT_VALUE,
        "The class that converts keys, unless a connector names its own.",
    ),
    (
        "value.converter",
        Type.STRING,
        NO_DEFAULT_VALUE,
        "The class that converts values, unless a connector names its own.",
    ),
    (
        "header.converter",
        Type.STRING,
        "org.apache.kafka.connect.storage.SimpleHeaderConverter",
        "The class that converts headers, unless a connector names its own.",
    ),
    (
        "client.id",
        Type.STRING,
        "",
        "The name that the worker's Kafka clients give themselves in the broker's logs.",
    ),
    (
        "listeners",
        Type.LIST,
        "http://127.0.0.1:8083",
        "The address at which the worker serves its REST interface.",
    ),
    (
        "rest.advertised.host.name",
        Type.STRING,
        None,
        "The host name at which other workers reach this worker's REST interface.",
    ),
    (
        "rest.advertised.port",
        Type.INT,
        None,
        "The port at which other workers reach this worker's REST interface.",
    ),
    (
        "rest.advertised.listener",
        Type.STRING,
        None,
        "The protocol, http or https, by which other workers reach this worker's REST interface.",
    ),
    (
        "allowed.hosts",
        Type.LIST,
        "",
        "More names by which clients may reach the REST interface, as a proxy's; * allows all.",
    ),
    (
        "access.control.allow.origin",
        Type.STRING,
        "",
        "The origins whose web pages may call the REST interface, with commas between; * allows "
        "all.",
    ),
    (
        "rest.basic.auth.credentials",
        Type.PASSWORD,
        None,
        "The users of the REST interface, as user:password with commas between. If it is empty, "
        "the REST interface is open to everybody who can connect.",
    ),
    ("plugin.path", Type.LIST, "", "The folders in which the worker looks for plugins."),
    (
        "config.providers",
        Type.LIST,
        "",
        "The names of the config providers; `config.providers.NAME.class` is the class of one.",
    ),
    (
        ALLOWED_DIRECTORIES,
        Type.LIST,
        "",
        "The directories whose files connectors may read and write. If it is empty, connectors may "
        "use no files.",
    ),
    (
        "offset.flush.interval.ms",
        Type.LONG,
        60_000,
        "The time between two commits of a task's offsets.",
    ),
    (
        "offset.flush.timeout.ms",
        Type.LONG,
        5_000,
        "The time that a commit of offsets may take before it is given up and tried again later.",
    ),
    (
        "task.shutdown.graceful.timeout.ms",
        Type.LONG,
        5_000,
        "The time that the worker waits for a task to stop. After that the task cannot write.",
    ),
    (
        "tasks.isolation",
        Type.STRING,
        "thread",
        "The place where tasks run: `thread` runs each in a thread of the worker; `process` runs "
        "each in a process of its own, which uses several cores.",
    ),
    (
        "topic.creation.enable",
        Type.BOOLEAN,
        True,
        "Whether source connectors may create the topics that they write to.",
    ),
    (
        "topic.tracking.enable",
        Type.BOOLEAN,
        True,
        "Whether the worker remembers which topics a connector has used, and shows them over REST.",
    ),
    (
        "topic.tracking.allow.reset",
        Type.BOOLEAN,
        True,
        "Whether a REST request may clear the list of topics that a connector has used.",
    ),
    (
        "connector.client.config.override.policy",
        Type.STRING,
        "All",
        "The settings of Kafka clients that a connector may override: All, Principal, Allowlist or "
        "None.",
    ),
)
_STANDALONE: Final[tuple[_Setting, ...]] = (
    (
        "offset.storage.file.filename",
        Type.STRING,
        NO_DEFAULT_VALUE,
        "The file in which the worker stores the offsets of source connectors.",
    ),
)
_DISTRIBUTED: Final[tuple[_Setting, ...]] = (
    (
        "group.id",
        Type.STRING,
        NO_DEFAULT_VALUE,
        "The id of the group of workers that share the connectors. No consumer group may have it.",
    ),
    (
        "config.storage.topic",
        Type.STRING,
        NO_DEFAULT_VALUE,
        "The topic in which the workers store the configurations of connectors.",
    ),
    ("config.storage.replication.factor", Type.SHORT, 3, _REPLICAS.format("config")),
    (
        "offset.storage.topic",
        Type.STRING,
        NO_DEFAULT_VALUE,
        "The topic in which the workers store the offsets of source connectors.",
    ),
    ("offset.storage.replication.factor", Type.SHORT, 3, _REPLICAS.format("offset")),
    ("offset.storage.partitions", Type.INT, 25, _PARTITIONS.format("offset")),
    (
        "status.storage.topic",
        Type.STRING,
        NO_DEFAULT_VALUE,
        "The topic in which the workers store the status of connectors and tasks.",
    ),
    ("status.storage.replication.factor", Type.SHORT, 3, _REPLICAS.format("status")),
    ("status.storage.partitions", Type.INT, 5, _PARTITIONS.format("status")),
    (
        "session.timeout.ms",
        Type.INT,
        10_000,
        "The time without a heartbeat after which the group counts a worker as lost.",
    ),
    (
        "heartbeat.interval.ms",
        Type.INT,
        3_000,
        "The time between two heartbeats of a worker to its group.",
    ),
    (
        "rebalance.timeout.ms",
        Type.INT,
        60_000,
        "The time that a worker may take to join its group again when work is distributed.",
    ),
    (
        "scheduled.rebalance.max.delay.ms",
        Type.INT,
        300_000,
        "The time that the connectors and tasks of a lost worker wait for it to return before "
        "other workers take them over.",
    ),
    (
        "inter.worker.key.ttl.ms",
        Type.INT,
        3_600_000,
        "The time that the workers use one key to sign their requests to each other.",
    ),
    (
        EXACTLY_ONCE,
        Type.STRING,
        "disabled",
        "Whether source connectors write their records and offsets in transactions. Set it to "
        "preparing on every worker first, and then to enabled (KIP-618).",
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
    (
        "connect.protocol",
        Type.STRING,
        "sessioned",
        "The protocol in which workers agree on their work: `sessioned` also signs their "
        "requests to each other.",
    ),
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
