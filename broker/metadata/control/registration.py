"""BrokerRegistration, UnregisterBroker, ControllerRegistration: cluster membership (KIP-631).

The broker epoch of a registration is the offset of its record: it is unique, and a broker whose
heartbeat names this metadata offset has read its registration. A broker is registered as fenced. An
id with an active session is refused to another incarnation. The exception is the broker in the
controller's own process, because an earlier incarnation of it cannot be running.
"""

from broker.metadata.control.leadership.broker_changes import begin_incarnation, unregister_broker
from broker.metadata.control.view import ClusterView, Decision, Moment
from broker.metadata.features import METADATA_VERSION
from broker.metadata.image import BrokerImage
from broker.metadata.parts.brokers import RESERVED_DIRECTORIES
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
)
from common.kafka.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from common.kafka.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from common.kafka.protocol.records.metadata import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)

MIN_METADATA_VERSION = 1  # the level of a broker that does not name one


def handle_broker_registration(
    view: ClusterView, request: BrokerRegistrationRequest, api_version: int, moment: Moment
) -> Decision:
    """Register a broker, or update the registration of the same incarnation."""
    existing = view.image.brokers.get(request.broker_id)
    _validate_registration(view, request, existing, moment)
    record = RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=moment.next_offset,
        rack=request.rack,
        end_points=_endpoints(request),
        features=_features(request),
        log_dirs=request.log_dirs,
    )
    records: list[Message] = []
    if existing is not None and existing.incarnation_id == request.incarnation_id:
        record.broker_epoch = existing.epoch
        record.fenced = existing.is_fenced
        record.in_controlled_shutdown = existing.is_in_controlled_shutdown
        record.cordoned_log_dirs = _as_list(existing.cordoned_log_dirs)
        if not existing.is_fenced:
            view.sessions.touch(existing, moment.now_ms)
    else:
        was_clean = existing is not None and request.previous_broker_epoch == existing.epoch
        records += begin_incarnation(view, request.broker_id, was_clean_shutdown=was_clean)
        view.sessions.end(request.broker_id)
    response = BrokerRegistrationResponse(broker_epoch=record.broker_epoch)
    return Decision(response, [*records, record])


def _validate_registration(
    view: ClusterView,
    request: BrokerRegistrationRequest,
    existing: BrokerImage | None,
    moment: Moment,
) -> None:
    if view.config.cluster_id and request.cluster_id != view.config.cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {view.config.cluster_id}, but got cluster ID "
            f"{request.cluster_id}",
        )
    if (
        existing is not None
        and existing.incarnation_id != request.incarnation_id
        and request.incarnation_id != view.config.own_incarnation_id
        and view.sessions.is_alive(request.broker_id, moment.now_ms)
    ):
        raise KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            "Another broker is registered with that broker id.",
        )
    if request.is_migrating_zk_broker:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            "Controller does not support registering ZK brokers.",
        )
    _validate_directories(view, request)
    _validate_features(view, request.features)


def _validate_directories(view: ClusterView, request: BrokerRegistrationRequest) -> None:
    wanted = set(request.log_dirs)
    if not wanted:
        problem = "No directories specified in request"
    elif wanted & RESERVED_DIRECTORIES:
        problem = "Reserved directory ID in request"
    elif len(wanted) != len(request.log_dirs):
        problem = "Duplicate directory ID in request"
    else:
        for broker in view.image.brokers.values():
            shared = wanted & set(broker.log_dirs)
            if broker.broker_id != request.broker_id and shared:
                problem = (
                    f"Broker {broker.broker_id} is already registered with directory "
                    f"{min(shared).hex()}"
                )
                break
        else:
            return
    raise KafkaError(ErrorCode.INVALID_REGISTRATION, problem)


def _validate_features(view: ClusterView, features: list[Feature]) -> None:
    """Raise UNSUPPORTED_VERSION if a broker does not support a finalized feature (KIP-584)."""
    supported = {
        feature.name: (feature.min_supported_version, feature.max_supported_version)
        for feature in features
    }
    supported.setdefault(METADATA_VERSION, (MIN_METADATA_VERSION, MIN_METADATA_VERSION))
    for name in sorted({*supported, *view.image.features}):
        lowest, highest = supported.get(name, (0, 0))
        default = MIN_METADATA_VERSION if name == METADATA_VERSION else 0
        finalized = view.image.features.get(name, default)
        if not lowest <= finalized <= highest:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Unable to register because the broker does not support finalized version "
                f"{finalized} of {name}. The broker wants a version between {lowest} and "
                f"{highest}, inclusive.",
            )


def _as_list(directories: tuple[bytes, ...] | None) -> list[bytes] | None:
    return None if directories is None else list(directories)


def handle_unregister_broker(
    view: ClusterView, request: UnregisterBrokerRequest, api_version: int, moment: Moment
) -> Decision:
    """Unregister a broker."""
    broker = view.image.brokers.get(request.broker_id)
    if broker is None:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            f"Broker ID {request.broker_id} is not currently registered",
        )
    view.sessions.end(request.broker_id)
    return Decision(UnregisterBrokerResponse(error_message=None), unregister_broker(view, broker))


def handle_controller_registration(
    view: ClusterView, request: ControllerRegistrationRequest, api_version: int, moment: Moment
) -> Decision:
    """Register a controller."""
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        end_points=_endpoints(request),
        features=_features(request),
    )
    return Decision(ControllerRegistrationResponse(error_message=None), [record])


def _endpoints(
    request: BrokerRegistrationRequest | ControllerRegistrationRequest,
) -> list[BrokerEndpoint]:
    return [
        BrokerEndpoint(
            name=listener.name,
            host=listener.host,
            port=listener.port,
            security_protocol=listener.security_protocol,
        )
        for listener in request.listeners
    ]


def _features(
    request: BrokerRegistrationRequest | ControllerRegistrationRequest,
) -> list[BrokerFeature]:
    return [
        BrokerFeature(
            name=feature.name,
            min_supported_version=feature.min_supported_version,
            max_supported_version=feature.max_supported_version,
        )
        for feature in request.features
    ]
