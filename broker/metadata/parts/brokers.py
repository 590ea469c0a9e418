"""The registered brokers and controllers, alive or not (KIP-631, KIP-919), and producer ids.

Brokers get producer ids in blocks; an id is never allocated twice (KIP-730).
"""

from dataclasses import dataclass, field

from common.kafka.protocol.records.metadata import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)

FENCE, UNFENCE = 1, -1  # in a BrokerRegistrationChangeRecord; 0 is no change
IN_CONTROLLED_SHUTDOWN = 1

# The special values of a log directory id (KIP-858).
MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY, LOST_DIRECTORY = (
    bytes([*bytes(15), i]) for i in range(3)
)
RESERVED_DIRECTORIES = frozenset(bytes([*bytes(15), number]) for number in range(100))


@dataclass(slots=True)
class BrokerImage:
    """The last registration of a broker. A fenced one leads nothing and is hidden from clients."""

    broker_id: int
    epoch: int  # the offset of the registration's record, unique for each registration
    incarnation_id: bytes
    endpoints: dict[str, tuple[str, int]]  # listener name -> host and port
    security_protocols: dict[str, int]  # listener name -> number
    rack: str | None
    is_fenced: bool
    is_in_controlled_shutdown: bool
    log_dirs: tuple[bytes, ...]
    cordoned_log_dirs: tuple[bytes, ...] | None
    features: dict[str, tuple[int, int]] = field(default_factory=dict)  # lowest, highest level

    @property
    def is_active(self) -> bool:
        """True if it may lead and be in an in-sync set."""
        return not self.is_fenced and not self.is_in_controlled_shutdown

    @property
    def default_directory(self) -> bytes:
        """The log directory of a new replica without an assignment."""
        if not self.log_dirs:
            return MIGRATING_DIRECTORY
        return self.log_dirs[0] if len(self.log_dirs) == 1 else UNASSIGNED_DIRECTORY

    def has_online_directory(self, directory: bytes) -> bool:
        """Return True if a replica in that directory can be served."""
        if directory in RESERVED_DIRECTORIES:
            return directory != LOST_DIRECTORY
        return directory in self.log_dirs


@dataclass(frozen=True, slots=True)
class ControllerImage:
    """The last registration of one controller."""

    controller_id: int
    incarnation_id: bytes
    endpoints: dict[str, tuple[str, int]]
    security_protocols: dict[str, int]
    features: dict[str, tuple[int, int]]


def broker_from_record(record: RegisterBrokerRecord) -> BrokerImage:
    """Return the broker of a registration record."""
    cordoned = record.cordoned_log_dirs
    return BrokerImage(
        broker_id=record.broker_id,
        epoch=record.broker_epoch,
        incarnation_id=record.incarnation_id,
        endpoints={end.name: (end.host, end.port) for end in record.end_points},
        security_protocols={end.name: end.security_protocol for end in record.end_points},
        rack=record.rack,
        is_fenced=record.fenced,
        is_in_controlled_shutdown=record.in_controlled_shutdown,
        log_dirs=tuple(record.log_dirs),
        cordoned_log_dirs=None if cordoned is None else tuple(cordoned),
        features=_levels(record.features),
    )


def controller_from_record(record: RegisterControllerRecord) -> ControllerImage:
    """Return the controller of a registration record."""
    return ControllerImage(
        controller_id=record.controller_id,
        incarnation_id=record.incarnation_id,
        endpoints={end.name: (end.host, end.port) for end in record.end_points},
        security_protocols={end.name: end.security_protocol for end in record.end_points},
        features=_levels(record.features),
    )


def change_broker(broker: BrokerImage, record: BrokerRegistrationChangeRecord) -> None:
    """Apply the changes of a record."""
    if record.fenced == FENCE:
        broker.is_fenced = True
    elif record.fenced == UNFENCE:
        broker.is_fenced = False
    if record.in_controlled_shutdown == IN_CONTROLLED_SHUTDOWN:
        broker.is_in_controlled_shutdown = True
    if record.log_dirs:
        broker.log_dirs = tuple(record.log_dirs)
    if record.cordoned_log_dirs is not None:
        broker.cordoned_log_dirs = tuple(record.cordoned_log_dirs)


def endpoint_records(image: BrokerImage | ControllerImage) -> list[BrokerEndpoint]:
    """Return the endpoints in the form of a record."""
    return [
        BrokerEndpoint(
            name=name, host=host, port=port, security_protocol=image.security_protocols[name]
        )
        for name, (host, port) in image.endpoints.items()
    ]


def feature_records(image: BrokerImage | ControllerImage) -> list[BrokerFeature]:
    """Return the feature levels in the form of a record."""
    return [
        BrokerFeature(name=name, min_supported_version=lowest, max_supported_version=highest)
        for name, (lowest, highest) in image.features.items()
    ]


def _levels(features: list[BrokerFeature]) -> dict[str, tuple[int, int]]:
    return {
        feature.name: (feature.min_supported_version, feature.max_supported_version)
        for feature in features
    }


class ProducerIdsImage:
    """The first producer id that is not allocated."""

    def __init__(self) -> None:
        self.next_producer_id = 0
        self.broker_id = -1  # the broker of the last block
        self.broker_epoch = -1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProducerIdsImage):
            return NotImplemented
        return self.next_producer_id == other.next_producer_id

    __hash__ = None  # type: ignore[assignment]  # it changes

    def replay(self, record: ProducerIdsRecord) -> None:
        """Move past an allocated block."""
        self.next_producer_id = record.next_producer_id
        self.broker_id = record.broker_id
        self.broker_epoch = record.broker_epoch
