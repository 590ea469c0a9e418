"""The cluster as a whole: its id, its nodes, its metadata quorum and its feature levels."""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from common.kafka.admin.client import ENDPOINT_TYPE_CONTROLLER, AdminClient, To, error_of, raise_for
from common.kafka.errors import KafkaError
from common.kafka.protocol.messages import describe_quorum
from common.kafka.protocol.messages.add_raft_voter import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    Listener,
)
from common.kafka.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from common.kafka.protocol.messages.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from common.kafka.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from common.kafka.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

ENDPOINT_TYPE_BROKER = 1
METADATA_TOPIC = "__cluster_metadata"


class UpgradeType(IntEnum):
    """The allowed changes of a feature's level, with Kafka's numbers."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureLevels(NamedTuple):
    """One feature: the levels that a node supports, and the finalized level."""

    name: str
    min_supported: int
    max_supported: int
    finalized: int


class Quorum(NamedTuple):
    """The metadata quorum in the leader's state."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: list[describe_quorum.ReplicaState]
    observers: list[describe_quorum.ReplicaState]
    endpoints: dict[int, list[str]]


def describe_cluster(
    client: AdminClient, *, include_fenced: bool = False
) -> DescribeClusterResponse:
    """Return the id of the cluster and its brokers, or its controllers with that endpoint type."""
    is_controller = client.settings.is_controller_bootstrap
    request = DescribeClusterRequest(
        endpoint_type=ENDPOINT_TYPE_CONTROLLER if is_controller else ENDPOINT_TYPE_BROKER,
        include_fenced_brokers=include_fenced,
    )
    response = client.ask(request, DescribeClusterResponse)
    raise_for(response.error_code, response.error_message)
    response.brokers.sort(key=_broker_id)
    return response


def unregister_broker(client: AdminClient, broker_id: int) -> None:
    """Unregister a broker that will not return."""
    request = UnregisterBrokerRequest(broker_id=broker_id)
    response = client.ask(request, UnregisterBrokerResponse, To.CONTROLLER)
    raise_for(response.error_code, response.error_message)


def describe_metadata_quorum(client: AdminClient) -> Quorum:
    """Return the state of the metadata quorum."""
    request = describe_quorum.DescribeQuorumRequest(
        topics=[
            describe_quorum.TopicData(
                topic_name=METADATA_TOPIC,
                partitions=[describe_quorum.PartitionData(partition_index=0)],
            )
        ]
    )
    response = client.ask(request, describe_quorum.DescribeQuorumResponse, _to_quorum(client))
    raise_for(response.error_code, response.error_message)
    partition = response.topics[0].partitions[0]
    raise_for(partition.error_code, partition.error_message)
    return Quorum(
        partition.leader_id,
        partition.leader_epoch,
        partition.high_watermark,
        partition.current_voters,
        partition.observers,
        {
            node.node_id: [
                f"{listener.name}://{listener.host}:{listener.port}" for listener in node.listeners
            ]
            for node in response.nodes
        },
    )


def add_raft_voter(
    client: AdminClient, node_id: int, directory_id: bytes, listeners: Iterable[Listener]
) -> None:
    """Make a controller a voter of the metadata quorum; return when that is committed."""
    request = AddRaftVoterRequest(
        timeout_ms=client.settings.request_timeout_ms,
        voter_id=node_id,
        voter_directory_id=directory_id,
        listeners=list(listeners),
    )
    response = client.ask(request, AddRaftVoterResponse, _to_quorum(client))
    raise_for(response.error_code, response.error_message)


def remove_raft_voter(client: AdminClient, node_id: int, directory_id: bytes) -> None:
    """Take a voter out of the metadata quorum; return when that is committed."""
    request = RemoveRaftVoterRequest(voter_id=node_id, voter_directory_id=directory_id)
    response = client.ask(request, RemoveRaftVoterResponse, _to_quorum(client))
    raise_for(response.error_code, response.error_message)


def _to_quorum(client: AdminClient) -> To:
    """Return the node to ask: a broker forwards to the quorum's leader, a controller does not."""
    return To.CONTROLLER if client.settings.is_controller_bootstrap else To.ANY_NODE


def describe_features(
    client: AdminClient, node_id: int | None
) -> tuple[list[FeatureLevels], int | None]:
    """Return the features of a node by name, and the epoch of the finalized levels."""
    answer = client.api_versions(To.ANY_NODE if node_id is None else node_id)
    finalized = {key.name: key.max_version_level for key in answer.finalized_features}
    levels = [
        FeatureLevels(key.name, key.min_version, key.max_version, finalized.get(key.name, 0))
        for key in sorted(answer.supported_features, key=_name)
    ]
    epoch = answer.finalized_features_epoch
    return levels, epoch if epoch >= 0 else None


def update_features(
    client: AdminClient, levels: Mapping[str, int], upgrade_type: UpgradeType, *, dry_run: bool
) -> dict[str, KafkaError | None]:
    """Change feature levels; return each outcome. From version 2 on the update is atomic."""
    request = UpdateFeaturesRequest(
        timeout_ms=client.settings.request_timeout_ms,
        feature_updates=[
            FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=upgrade_type)
            for feature, level in sorted(levels.items())
        ],
        validate_only=dry_run,
    )
    response = client.ask(request, UpdateFeaturesResponse, To.CONTROLLER)
    if response.error_code:
        error = error_of(response.error_code, response.error_message)
        return dict.fromkeys(sorted(levels), error)
    outcomes: dict[str, KafkaError | None] = dict.fromkeys(sorted(levels))
    for result in response.results:
        if result.error_code:
            outcomes[result.feature] = error_of(result.error_code, result.error_message)
    return outcomes


def _broker_id(broker: DescribeClusterBroker) -> int:
    return broker.broker_id


def _name(feature: object) -> str:
    return str(getattr(feature, "name"))  # noqa: B009
