"""The settings that a group may have: those of consumer, share and streams groups.

Each number lies within bounds that the broker sets (`group.consumer.min.*` and the like).
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from broker.metadata.share_reset import parse_reset
from common.kafka.errors import ErrorCode, KafkaError


class GroupLimit(NamedTuple):
    """The bounds of a group's own value, both included, and the value of a group without one."""

    lowest: int
    highest: int
    default: int


GROUP_LIMITS: Final[dict[str, GroupLimit]] = {
    "consumer.heartbeat.interval.ms": GroupLimit(5_000, 15_000, 5_000),
    "consumer.session.timeout.ms": GroupLimit(45_000, 60_000, 45_000),
    "consumer.assignment.interval.ms": GroupLimit(0, 15_000, 1_000),
    "share.heartbeat.interval.ms": GroupLimit(5_000, 15_000, 5_000),
    "share.session.timeout.ms": GroupLimit(45_000, 60_000, 45_000),
    "share.assignment.interval.ms": GroupLimit(0, 15_000, 1_000),
    "share.delivery.count.limit": GroupLimit(2, 10, 5),
    "share.record.lock.duration.ms": GroupLimit(15_000, 60_000, 30_000),
    "share.partition.max.record.locks": GroupLimit(100, 4_000, 2_000),
    "streams.heartbeat.interval.ms": GroupLimit(5_000, 15_000, 5_000),
    "streams.session.timeout.ms": GroupLimit(45_000, 60_000, 45_000),
    "streams.assignment.interval.ms": GroupLimit(0, 15_000, 1_000),
    "streams.num.standby.replicas": GroupLimit(0, 2, 0),
    "streams.initial.rebalance.delay.ms": GroupLimit(0, 2**31 - 1, 3_000),
}
"""The numbers, with the bounds and defaults of Kafka."""
RENEW_IS_ENABLED: Final = "share.renew.acknowledge.enable"
CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "share.isolation.level": ("read_uncommitted", "read_committed"),
    RENEW_IS_ENABLED: ("true", "false"),
}
RESET: Final = "share.auto.offset.reset"
GROUP_DEFAULTS: Final = {name: choices[0] for name, choices in CHOICES.items()} | {RESET: "latest"}
"""The values of a group without its own, where no setting of the broker gives them."""
GROUP_SETTINGS: Final = frozenset({*GROUP_LIMITS, *CHOICES, RESET})


def validate_group(name: str, wanted: Mapping[str, str], limits: Mapping[str, GroupLimit]) -> None:
    """Raise INVALID_REQUEST or INVALID_CONFIG if a group cannot have these settings."""
    if name == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    for key, text in wanted.items():
        if key in limits:
            _validate_limit(key, text, limits[key])
        elif key in CHOICES:
            _validate_choice(key, text)
        elif key == RESET:
            _validate_reset(text)
        else:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {key}")
    for kind in ("consumer", "share", "streams"):
        _validate_session(kind, wanted, limits)


def _validate_limit(key: str, text: str, limit: GroupLimit) -> None:
    value = _number(key, text)
    if value < limit.lowest:
        problem = f"greater than or equal to {broker_setting(key, 'min') or limit.lowest}"
    elif value > limit.highest:
        problem = f"less than or equal to {broker_setting(key, 'max') or limit.highest}"
    else:
        return
    raise KafkaError(ErrorCode.INVALID_CONFIG, f"{key} must be {problem}")


BOUNDS_WITH_OTHER_NAMES: Final[dict[str, dict[str, str]]] = {
    "streams.num.standby.replicas": {"max": "group.streams.max.standby.replicas"},
    "streams.initial.rebalance.delay.ms": {},
}


def broker_setting(key: str, bound: str) -> str:
    """Return the name of the broker's setting that bounds a group's value; empty if none does."""
    if key in BOUNDS_WITH_OTHER_NAMES:
        return BOUNDS_WITH_OTHER_NAMES[key].get(bound, "")
    kind, _, rest = key.partition(".")
    return f"group.{kind}.{bound}.{rest}"


def _validate_choice(key: str, text: str) -> None:
    if text.lower() not in CHOICES[key]:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Invalid value {text} for configuration {key}: must be one of "
            f"{', '.join(CHOICES[key])}",
        )


def _validate_reset(text: str) -> None:
    try:
        parse_reset(text)
    except ValueError as error:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"Invalid value {text} for configuration {RESET}: {error}"
        ) from error


def _validate_session(
    kind: str, wanted: Mapping[str, str], limits: Mapping[str, GroupLimit]
) -> None:
    """Raise INVALID_CONFIG for a session that is not longer than the heartbeat interval."""
    session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
    values = [int(wanted.get(key, limits[key].default)) for key in (session, heartbeat)]
    if (session in wanted or heartbeat in wanted) and values[0] <= values[1]:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"{session} must be greater than {heartbeat}")


def _number(key: str, text: str) -> int:
    value = whole_number(text)
    if value is None:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Invalid value {text} for configuration {key}: Not a number of type INT",
        )
    return value


def whole_number(text: str) -> int | None:
    """Return the integer in a short text of digits, None for other texts."""
    digits = text.removeprefix("-")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= len(str(2**31))
    return int(text) if is_number else None
