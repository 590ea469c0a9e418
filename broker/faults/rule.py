"""One rule: which calls it matches, what it does to them, and when. Read from JSON, checked.

    {"kind": "error", "api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER",
     "topic": "orders", "partition": 1, "when": {"times": 3}}

A rule that can never act is refused in words when it is made.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, Final

from broker.faults.asked import Asked, names, names_topics
from broker.faults.places import Kind, Place, fields_of, places
from broker.faults.triggers import Trigger, as_json, read_trigger
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import API_VERSION_RANGES, ApiKey
from common.kafka.protocol.framing import response_class

MAX_TEXT: Final = 1_000
MAX_MS: Final = 3_600_000
MAX_BYTES: Final = 1_000_000_000


class FaultKind(StrEnum):
    """What a rule does to a call."""

    ERROR = "error"
    DELAY = "delay"
    LOSE_REQUEST = "lose_request"
    LOSE_ANSWER = "lose_answer"
    CLOSE = "close"
    RESET = "reset"
    TEAR = "tear"
    BLACK_HOLE = "black_hole"
    THROTTLE = "throttle"
    DAMAGE_RECORDS = "damage_records"
    DISK = "disk"


class DiskFailure(StrEnum):
    """What a disk does."""

    SLOW = "slow"
    FULL = "full"
    FAIL = "fail"


ERRORS_OF_PARTITIONS: Final = frozenset(
    {
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
)
"""Kafka gives these to one topic or partition, also where the whole answer could have an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a client, as rules see it."""

    api_key: int
    version: int
    client_id: str
    principal: str
    asked: Asked
    is_of_broker: bool = False
    """True for a call of another node: only a rule that names its client id acts on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What a test has asked for. None stands for any."""

    kind: FaultKind
    when: Trigger
    api: ApiKey | None = None
    version: int | None = None
    topic: str | None = None
    partition: int | None = None
    client_id: str | None = None
    principal: str | None = None
    transactional_id: str | None = None
    group: str | None = None
    error: ErrorCode | None = None
    at: Kind | None = None
    """Where the error goes; None: where Kafka puts it."""
    ms: int = 0
    """The length of a delay, a throttling or a slow access to a disk."""
    bytes: int | None = None
    """The bytes of a torn answer that are sent; None: half of it."""
    after: bool = False
    """True if the broker does the work first."""
    disk: DiskFailure | None = None

    def __post_init__(self) -> None:
        """Raise ValueError if the rule can never act."""
        if self.kind in _OF_ONE_API and self.api is None:
            raise ValueError(f"a rule of the kind {self.kind} needs an api")
        if self.kind is FaultKind.DAMAGE_RECORDS and self.api is not ApiKey.FETCH:
            raise ValueError("only the answers of Fetch have records to damage")
        if self.kind is not FaultKind.DISK and self.api is not None:
            self._check_api(self.api)

    def _check_api(self, api: ApiKey) -> None:
        versions = self._versions(api)
        if self.version is not None and self.version not in versions:
            known = API_VERSION_RANGES[api]
            raise ValueError(
                f"{api_name(api)} has no version {self.version}, but "
                f"{known.advertised_min} to {known.max}"
            )
        fields = (
            ("topic", self.topic, names_topics),
            ("partition", self.partition, names_topics),
            ("group", self.group, lambda api, each: names(api, each, Kind.GROUP)),
            (
                "transactional_id",
                self.transactional_id,
                lambda api, each: names(api, each, Kind.TRANSACTION),
            ),
        )
        in_version = "" if self.version is None else f" of version {self.version}"
        for name, value, has in fields:
            if value is not None and not any(has(api, each) for each in versions):
                raise ValueError(f"a {api_name(api)} request{in_version} names no {name}")
        if self.kind is FaultKind.THROTTLE and not any(_is_throttled(api, v) for v in versions):
            raise ValueError(f"a {api_name(api)} answer{in_version} has no throttle_time_ms")
        if self.kind is FaultKind.ERROR and not any(self.place(api, each) for each in versions):
            raise ValueError(
                f"a {api_name(api)} answer{in_version} has no error of "
                f"{'a ' + self.at if self.at else 'what the rule names'}: it has those of "
                + ", ".join(sorted({place.kind for v in versions for place in places(api, v)}))
            )

    def _versions(self, api: ApiKey) -> range:
        known = API_VERSION_RANGES[api]
        versions = range(known.advertised_min, known.max + 1)
        if self.version is None:
            return versions
        return range(self.version, self.version + 1) if self.version in versions else range(0)

    def matches(self, call: Call) -> bool:
        """Return whether the rule is about a call."""
        return (
            self.api in (None, call.api_key)
            and not (call.is_of_broker and self.client_id is None)
            and self.version in (None, call.version)
            and self.client_id in (None, call.client_id)
            and self.principal in (None, call.principal)
            and (self.group is None or self.group in call.asked.groups)
            and (
                self.transactional_id is None
                or self.transactional_id in call.asked.transactional_ids
            )
            and call.asked.concerns(self.topic, self.partition)
            and (self.kind is not FaultKind.ERROR or self.place(*_of(call)) is not None)
        )

    def place(self, api_key: int, version: int) -> Place | None:
        """Return where the error goes in the answers of a version, None if it has no place."""
        found = places(api_key, version)
        if self.at is not None:
            return next((place for place in found if place.kind is self.at), None)
        if self.partition is not None:
            return _last(found, lambda place: place.kind is Kind.PARTITION) or self._at_top(found)
        if self.topic is not None:
            listed = _last(found, lambda place: place.is_listed and place.has(Kind.TOPIC))
            return listed or self._at_top(found)
        if self.error in ERRORS_OF_PARTITIONS:
            listed = _last(found, lambda place: place.is_listed and place.has(Kind.TOPIC))
            return listed or found[0]
        return found[0]

    @staticmethod
    def _at_top(found: tuple[Place, ...]) -> Place | None:
        """The answer to a request that names topics may have an error for all of them alone."""
        return None if any(place.has(Kind.TOPIC) for place in found) else found[0]

    @property
    def wanted(self) -> dict[Kind, object]:
        """Which entries of the answer get the error."""
        named = {
            Kind.TOPIC: self.topic,
            Kind.PARTITION: self.partition,
            Kind.GROUP: self.group,
            Kind.TRANSACTION: self.transactional_id,
        }
        return {kind: value for kind, value in named.items() if value is not None}

    def as_json(self) -> dict[str, Any]:
        """Return what `read_rule` reads."""
        shown: dict[str, Any] = {"kind": str(self.kind), "when": as_json(self.when)}
        if self.api is not None:
            shown["api"] = api_name(self.api)
        if self.error is not None:
            shown["error"] = self.error.name
        for name in ("at", "disk"):
            if getattr(self, name) is not None:
                shown[name] = str(getattr(self, name))
        for name in (*_TEXTS, "version", "partition", "bytes"):
            if getattr(self, name) is not None:
                shown[name] = getattr(self, name)
        if self.ms:
            shown["ms"] = self.ms
        if self.after:
            shown["after"] = True
        return shown


_TEXTS: Final = ("topic", "client_id", "principal", "transactional_id", "group")
_OF_ONE_API: Final = frozenset(
    {FaultKind.ERROR, FaultKind.THROTTLE, FaultKind.TEAR, FaultKind.DAMAGE_RECORDS}
)
_ANY_CALL: Final = frozenset({"kind", "when", "api", "version", "partition", *_TEXTS})
_FIELDS: Final[Mapping[FaultKind, frozenset[str]]] = {
    FaultKind.ERROR: frozenset({"error", "at", "after"}),
    FaultKind.DELAY: frozenset({"ms", "after"}),
    FaultKind.CLOSE: frozenset({"after"}),
    FaultKind.RESET: frozenset({"after"}),
    FaultKind.TEAR: frozenset({"bytes"}),
    FaultKind.THROTTLE: frozenset({"ms"}),
    FaultKind.DISK: frozenset({"disk", "ms"}),
}
_NEEDED: Final[Mapping[FaultKind, tuple[str, ...]]] = {
    FaultKind.ERROR: ("error",),
    FaultKind.DELAY: ("ms",),
    FaultKind.THROTTLE: ("ms",),
    FaultKind.BLACK_HOLE: ("client_id",),
    FaultKind.DISK: ("disk",),
}
_OF_DISKS: Final = frozenset({"kind", "when", "topic", "partition", "disk", "ms"})


def read_rule(value: object) -> Rule:
    """Read a rule from JSON; raise ValueError with what is wrong in words."""
    if not isinstance(value, Mapping):
        raise ValueError("a rule is an object")
    kind = _one_of(FaultKind, "kind", value.get("kind"))
    known = _OF_DISKS if kind is FaultKind.DISK else _ANY_CALL | _FIELDS.get(kind, frozenset())
    for name in value:
        if name not in known:
            raise ValueError(
                f"a rule of the kind {kind} has no {str(name)[:40]!r}{_near(name, known)}"
            )
    for name in (*_NEEDED.get(kind, ()), "when"):
        if name not in value:
            raise ValueError(f"a rule of the kind {kind} needs {name}")
    read = {name: _READERS[name](name, given) for name, given in value.items() if name != "kind"}
    return Rule(kind=kind, **read)


def api_name(api_key: int) -> str:
    """Return Kafka's name of an API: `InitProducerId`."""
    return ApiKey(api_key).name.title().replace("_", "")


_API_NAMES: Final = {api_name(each): each for each in API_VERSION_RANGES}


def read_api(name: str, value: object) -> ApiKey:
    """Read the name of an API; raise ValueError."""
    if not isinstance(value, str) or value not in _API_NAMES:
        raise ValueError(f"there is no {name} {str(value)[:60]!r}{_near(value, _API_NAMES)}")
    return _API_NAMES[value]


def _error(_: str, value: object) -> ErrorCode:
    if not isinstance(value, str) or value not in ErrorCode.__members__ or value == "NONE":
        near = _near(value, ErrorCode.__members__)
        raise ValueError(f"Kafka has no error {str(value)[:60]!r}{near}")
    return ErrorCode[value]


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_TEXT:
        raise ValueError(f"{name} is a text of 1 to {MAX_TEXT} characters")
    return value


def _number(most: int) -> Callable[[str, object], int]:
    def read(name: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
            raise ValueError(f"{name} is a whole number from 0 to {most}")
        return value

    return read


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{name} is true or false")
    return value


def _one_of(words: type[Any], name: str, value: object) -> Any:
    texts = [str(each) for each in words]
    if not isinstance(value, str) or value not in texts:
        raise ValueError(f"{name} is one of {', '.join(texts)}")
    return words(value)


def _near(value: object, known: Any) -> str:
    found = get_close_matches(str(value)[:60], known, n=1)
    return f"; did you mean {found[0]}?" if found else ""


_READERS: Final[Mapping[str, Callable[[str, object], Any]]] = {
    **dict.fromkeys(_TEXTS, _text),
    "when": lambda _, value: read_trigger(value),
    "api": read_api,
    "version": _number(2**15 - 1),
    "partition": _number(2**31 - 1),
    "error": _error,
    "at": lambda name, value: _one_of(Kind, name, value),
    "disk": lambda name, value: _one_of(DiskFailure, name, value),
    "ms": _number(MAX_MS),
    "bytes": _number(MAX_BYTES),
    "after": _flag,
}


def _is_throttled(api_key: int, version: int) -> bool:
    return any(
        field.name == "throttle_time_ms" for field in fields_of(response_class(api_key), version)
    )


def _last(found: tuple[Place, ...], suits: Callable[[Place], bool]) -> Place | None:
    return next((place for place in reversed(found) if suits(place)), None)


def _of(call: Call) -> tuple[int, int]:
    return call.api_key, call.version
