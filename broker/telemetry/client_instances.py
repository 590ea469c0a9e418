"""The clients that asked for subscriptions: what each shall push, and which requests are refused.

A client asks, pushes once, and then pushes at its interval. An instance whose subscriptions have
changed is made anew: its next push has an unknown subscription id, and the client asks again. The
cache is bounded; the client that was silent for the longest time leaves it first. A client that is
not known is one that asks for the first time.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from crc32c import crc32c

from broker.telemetry.subscriptions import Subscription, Wanted, wanted_of
from common.kafka.errors import ErrorCode, KafkaError

MAX_INSTANCES: Final = 16_384
MIN_EXPIRY_MS: Final = 60_000
INTERVALS_TO_EXPIRY: Final = 3
NEVER_MS: Final = -(1 << 62)
ZERO_ID: Final = bytes(16)
RESERVED_IDS: Final = frozenset({ZERO_ID, bytes(15) + b"\x01"})
MAX_COMPRESSION_TYPE: Final = 4

_RETRIED_AT_ONCE = {ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE}


@dataclass(slots=True)
class ClientInstance:
    """One client: what it shall push, and the times of its last requests."""

    instance_id: bytes
    attributes: Mapping[str, str]
    wanted: Wanted
    subscription_id: int
    version: int
    """The version of the subscriptions from which `wanted` was computed."""
    last_get_ms: int = NEVER_MS
    last_push_ms: int = NEVER_MS
    is_terminating: bool = False
    last_error: ErrorCode = ErrorCode.NONE
    expires_ms: int = field(default=NEVER_MS)

    def takes_get(self, now_ms: int) -> bool:
        """Return whether an interval has passed since the last request; note the time if so."""
        if now_ms - max(self.last_get_ms, self.last_push_ms) < self.wanted.interval_ms:
            return False
        self.last_get_ms = now_ms
        return True

    def takes_push(self, now_ms: int) -> bool:
        """Return whether a push is due; note the time if so."""
        is_first = self.last_get_ms > self.last_push_ms
        if not is_first and now_ms - self.last_push_ms < self.wanted.interval_ms:
            return False
        self.last_push_ms = now_ms
        return True


@dataclass(frozen=True, slots=True)
class Push:
    """A push as far as it can be refused without a look at its metrics."""

    subscription_id: int
    compression_type: int
    size_bytes: int
    is_terminating: bool


class ClientInstances:
    """The known clients. `throttle_count` and `unknown_subscription_count` only grow."""

    def __init__(self, max_push_bytes: int) -> None:
        self.max_push_bytes = max_push_bytes
        self.throttle_count = 0
        self.unknown_subscription_count = 0
        self._subscriptions: tuple[Subscription, ...] = ()
        self._version = 0
        self._instances: OrderedDict[bytes, ClientInstance] = OrderedDict()

    def __len__(self) -> int:
        return len(self._instances)

    def subscribe(self, subscriptions: Iterable[Subscription]) -> None:
        """Replace all subscriptions."""
        self._subscriptions = tuple(subscriptions)
        self._version += 1

    def find(
        self, instance_id: bytes, attributes: Mapping[str, str], now_ms: int
    ) -> ClientInstance:
        """Return a client, with its current subscriptions; a new client gets these attributes."""
        instance = self._instances.get(instance_id)
        if instance is None:
            instance = self._make(instance_id, attributes)
        elif instance.version < self._version:
            instance = self._make(instance_id, instance.attributes)
        expiry_ms = max(MIN_EXPIRY_MS, INTERVALS_TO_EXPIRY * instance.wanted.interval_ms)
        instance.expires_ms = now_ms + expiry_ms
        self._instances.move_to_end(instance_id)
        return instance

    def _make(self, instance_id: bytes, attributes: Mapping[str, str]) -> ClientInstance:
        wanted = wanted_of(self._subscriptions, attributes)
        text = f"{wanted.metrics}{wanted.interval_ms}".encode()
        subscription_id = int.from_bytes(
            crc32c(text + instance_id).to_bytes(4, "big"), "big", signed=True
        )
        made = ClientInstance(instance_id, attributes, wanted, subscription_id, self._version)
        self._instances[instance_id] = made
        if len(self._instances) > MAX_INSTANCES:
            self._instances.popitem(last=False)
        return made

    def check_get(self, instance: ClientInstance, now_ms: int) -> None:
        """Raise THROTTLING_QUOTA_EXCEEDED for a client that asks again before its interval."""
        if not instance.takes_get(now_ms) and instance.last_error not in _RETRIED_AT_ONCE:
            self.throttle_count += 1
            raise KafkaError(
                ErrorCode.THROTTLING_QUOTA_EXCEEDED, "the request came before the interval ended"
            )
        instance.last_error = ErrorCode.NONE

    def check_push(self, instance: ClientInstance, push: Push, now_ms: int) -> None:
        """Raise KafkaError for a push that is not taken."""
        try:
            self._check_push(instance, push, now_ms)
        except KafkaError as error:
            instance.last_error = error.code
            raise
        finally:
            instance.is_terminating = push.is_terminating
        instance.last_error = ErrorCode.NONE

    def _check_push(self, instance: ClientInstance, push: Push, now_ms: int) -> None:
        if instance.is_terminating:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the client has already terminated")
        if not instance.takes_push(now_ms) and not push.is_terminating:
            self.throttle_count += 1
            raise KafkaError(
                ErrorCode.THROTTLING_QUOTA_EXCEEDED, "the push came before the interval ended"
            )
        if push.subscription_id != instance.subscription_id:
            self.unknown_subscription_count += 1
            raise KafkaError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, "unknown subscription id")
        if not 0 <= push.compression_type <= MAX_COMPRESSION_TYPE:
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "unknown compression type")
        if push.size_bytes > self.max_push_bytes:
            raise KafkaError(
                ErrorCode.TELEMETRY_TOO_LARGE, f"more than {self.max_push_bytes} bytes"
            )

    def forget(self, instance_id: bytes) -> None:
        """Drop a client whose connection has closed."""
        self._instances.pop(instance_id, None)

    def expire(self, now_ms: int) -> None:
        """Drop the clients that are silent."""
        silent = [each.instance_id for each in self._instances.values() if each.expires_ms < now_ms]
        for instance_id in silent:
            del self._instances[instance_id]
