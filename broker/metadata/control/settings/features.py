"""UpdateFeatures: raise or lower finalized feature levels, all of the request or none.

See KIP-584, KIP-778, KIP-1022. A level must be supported by this controller, by every other voter
(which must have registered), and by every registered broker, including fenced ones, which may
return.
"""

from broker.metadata.control.limits import duplicates
from broker.metadata.control.settings.min_isr import agree_on_min_isr
from broker.metadata.control.view import ClusterView, Decision, Moment
from broker.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
)
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from common.kafka.protocol.records.metadata import ClearElrRecord, FeatureLevelRecord

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
FIRST_VERSION_WITHOUT_RESULTS = 2
MAX_LEVEL = 2**15 - 1


def bootstrap_records(view: ClusterView) -> list[Message]:
    """Return the records of a new cluster's levels; none for a cluster that has levels."""
    if METADATA_VERSION in view.image.features:
        return []
    levels = view.config.features_at_format
    records: list[Message] = [
        FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items()
    ]
    records += view.config.credentials_at_format
    if levels.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0:
        records += agree_on_min_isr(view)
    return records


def handle_update_features(
    view: ClusterView, request: UpdateFeaturesRequest, api_version: int, moment: Moment
) -> Decision:
    """Change all levels; raise KafkaError, with nothing changed, if one is not valid."""
    records: list[Message] = []
    if duplicates(update.feature for update in request.feature_updates):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A feature is named more than once.")
    for update in request.feature_updates:
        if update.feature == ELIGIBLE_LEADER_REPLICAS_VERSION and update.max_version_level > 0:
            records += agree_on_min_isr(view)
        try:
            records += _update(view, update, api_version)
        except KafkaError as error:
            raise update_failed(update, error) from error
    response = UpdateFeaturesResponse(error_message=None)
    if api_version < FIRST_VERSION_WITHOUT_RESULTS:
        response.results = [
            UpdatableFeatureResult(feature=update.feature, error_message=None)
            for update in request.feature_updates
        ]
    return Decision(response, [] if request.validate_only else records)


def update_failed(update: FeatureUpdateKey, error: KafkaError) -> KafkaError:
    """Return the refusal of a whole request because of one of its features."""
    return KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"The update failed for all features since the following feature had an error: "
        f"Invalid update version {update.max_version_level} for feature "
        f"{update.feature}. {error.message}",
    )


def _update(view: ClusterView, update: FeatureUpdateKey, api_version: int) -> list[Message]:
    name, level = update.feature, update.max_version_level
    _validate_direction(view, update, _upgrade_type(update, api_version))
    _validate_supported(view, name, level)
    current = view.image.features.get(name, 0)
    records: list[Message] = []
    if level != current:
        records.append(FeatureLevelRecord(name=name, feature_level=level))
    if name == ELIGIBLE_LEADER_REPLICAS_VERSION and level < current:
        _validate_isr_of_all(view)
        records.append(ClearElrRecord(topic_name=""))
    return records


def _validate_isr_of_all(view: ClusterView) -> None:
    """Raise INVALID_UPDATE_VERSION if a partition has only eligible leader replicas."""
    for topic in view.image.topics.by_id.values():
        for partition in topic.partitions.values():
            if not partition.isr:
                raise KafkaError(
                    ErrorCode.INVALID_UPDATE_VERSION,
                    f"Partition {topic.name}-{partition.partition} has no in-sync replica: "
                    "without its eligible leader replicas it could only be led uncleanly.",
                )


def _upgrade_type(update: FeatureUpdateKey, api_version: int) -> int:
    if api_version == 0:
        return SAFE_DOWNGRADE if update.allow_downgrade else UPGRADE
    return update.upgrade_type


def _validate_direction(view: ClusterView, update: FeatureUpdateKey, upgrade_type: int) -> None:
    current = view.image.features.get(update.feature, 0)
    problem = None
    if upgrade_type not in {UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE}:
        problem = "The controller does not support the given upgrade type."
    elif update.max_version_level < 0:
        problem = "A feature version cannot be less than 0."
    elif update.max_version_level < current and upgrade_type == UPGRADE:
        problem = (
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    elif update.max_version_level > current and upgrade_type != UPGRADE:
        problem = "Can't downgrade to a newer version."
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, problem)


def _validate_supported(view: ClusterView, name: str, level: int) -> None:
    nodes = [(f"Local controller {view.config.node_id}", SUPPORTED_FEATURES)]
    nodes += [
        (f"Controller {controller.controller_id}", controller.features)
        for _, controller in sorted(view.image.controllers.items())
        if controller.controller_id != view.config.node_id
    ]
    nodes += [
        (f"Broker {broker.broker_id}", broker.features)
        for _, broker in sorted(view.image.brokers.items())
    ]
    for who, supported in nodes:
        lowest, highest = supported.get(name, (0, 0))
        if lowest <= level <= highest:
            continue
        if (lowest, highest) == (0, 0):
            problem = f"{who} does not support this feature."
        else:
            problem = f"{who} only supports versions {lowest}-{highest}"
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, problem)
    known = {view.config.node_id, *view.image.controllers}
    for voter in view.config.voters():
        if voter not in known:
            raise KafkaError(
                ErrorCode.INVALID_UPDATE_VERSION,
                f"controller {voter} has not registered, and may not support this feature",
            )
