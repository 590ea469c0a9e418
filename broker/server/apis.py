"""The APIs that a broker serves, and how the handler of each is made.

A row of `APIS` is a function that makes the handler from the parts it works on. It is called, and
imports the handler's module, at the first request of the API, so that a broker starts fast and an
idle one is small.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from broker.server.broker import Broker
from broker.server.cluster.feature_apis import gated
from broker.server.network.dispatch import Handler
from common.kafka.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from broker.server.handlers.fetch.fetch import Fetch
    from broker.server.handlers.security import DescribeSecurity

MakeHandler = Callable[[Broker], Handler]

# --- records ---


def _produce(b: Broker) -> Handler:
    from broker.server.handlers.produce.produce import Produce

    return Produce(
        b.config, b.led_logs, b.parked_produces, b.metadata, b.metrics, b.verifier
    ).handle


def _fetches(b: Broker) -> "Fetch":
    from broker.server.handlers.fetch.fetch import Fetch

    return Fetch(b.config, b.led_logs, b.parked_fetches, b.fetch_sessions, b.metadata, b.metrics)


def _list_offsets(b: Broker) -> Handler:
    from broker.server.handlers.fetch.list_offsets import ListOffsets

    return ListOffsets(b.partitions, b.failures).handle


def _offset_for_leader_epoch(b: Broker) -> Handler:
    from broker.server.handlers.fetch.list_offsets import OffsetForLeaderEpoch

    return OffsetForLeaderEpoch(b.partitions).handle


def _delete_records(b: Broker) -> Handler:
    from broker.server.handlers.topics.delete_records import DeleteRecords

    return DeleteRecords(b.partitions, b.failures, b.parked_deletions).handle


def _share_fetch(b: Broker) -> Handler:
    from broker.server.handlers.share.share_fetch import ShareFetch

    return ShareFetch(
        b.config, b.shares, b.parked_share_fetches, b.share_admission, b.metrics, b.loop
    ).handle


def _share_acknowledge(b: Broker) -> Handler:
    from broker.server.handlers.share.share_acknowledge import ShareAcknowledge

    return ShareAcknowledge(b.shares, b.share_admission).handle


# --- the cluster and its topics ---


def _forward(b: Broker) -> Handler:
    """Make the handler of an API that the controller decides."""
    from broker.server.handlers.cluster.forward import Forward

    return Forward(b.metadata, b.ask, b.waits, b.partitions).handle


def _metadata(b: Broker) -> Handler:
    from broker.server.handlers.topics.metadata import Metadata

    creations = b.quotas.creations
    return Metadata(b.config, b.metadata, b.auto_topics, b.departures, creations).handle


def _describe_topic_partitions(b: Broker) -> Handler:
    from broker.server.handlers.topics.describe_topic_partitions import DescribeTopicPartitions

    return DescribeTopicPartitions(b.metadata, b.rights_of).handle


def _describe_cluster(b: Broker) -> Handler:
    from broker.server.handlers.cluster.describe_cluster import DescribeCluster

    return DescribeCluster(b.config, b.metadata, b.departures).handle


def _find_coordinator(b: Broker) -> Handler:
    from broker.server.handlers.cluster.find_coordinator import FindCoordinator

    return FindCoordinator(b.metadata, b.auto_topics, b.departures).handle


def _api_versions(b: Broker) -> Handler:
    from broker.server.handlers.cluster.api_versions import ApiVersions

    return ApiVersions(SERVED_APIS, b.metadata, b.telemetry).handle


def _describe_log_dirs(b: Broker) -> Handler:
    from broker.server.handlers.cluster.log_dirs import DescribeLogDirs

    return DescribeLogDirs(b.log_directories).handle


def _alter_replica_log_dirs(b: Broker) -> Handler:
    from broker.server.handlers.cluster.log_dirs import AlterReplicaLogDirs

    return AlterReplicaLogDirs(b.partitions, b.mover, b.failures).handle


def _get_telemetry_subscriptions(b: Broker) -> Handler:
    from broker.server.handlers.cluster.telemetry import GetTelemetrySubscriptions

    return GetTelemetrySubscriptions(b.telemetry).handle


def _push_telemetry(b: Broker) -> Handler:
    from broker.server.handlers.cluster.telemetry import PushTelemetry

    return PushTelemetry(b.telemetry).handle


# --- settings ---


def _describe_configs(b: Broker) -> Handler:
    from broker.server.settings.descriptions import SettingsDescriptions

    return SettingsDescriptions(b.settings, b.metadata).handle


def _alter_configs(b: Broker) -> Handler:
    from broker.server.handlers.settings import AlterConfigs

    return AlterConfigs(b.own_settings, b.metadata, b.ask, b.waits, b.partitions).handle


def _incremental_alter_configs(b: Broker) -> Handler:
    from broker.server.handlers.settings import IncrementalAlterConfigs

    return IncrementalAlterConfigs(b.own_settings, b.metadata, b.ask, b.waits, b.partitions).handle


def _list_config_resources(b: Broker) -> Handler:
    from broker.server.handlers.settings import ListConfigResources

    return ListConfigResources(b.metadata).handle


# --- security ---


def _describe_security(b: Broker) -> "DescribeSecurity":
    from broker.server.handlers.security import DescribeSecurity

    return DescribeSecurity(b.config, b.metadata)


def _change_acls(b: Broker) -> Handler:
    from broker.server.handlers.security import ChangeAcls

    return ChangeAcls(b.config, b.ask).handle


def _change_tokens(b: Broker) -> Handler:
    from broker.server.handlers.security import ChangeTokens

    return ChangeTokens(b.config, b.metadata, b.ask, b.waits).handle


def _sasl_handshake(b: Broker) -> Handler:
    from broker.server.handlers.security import refuse_handshake

    return refuse_handshake


def _sasl_authenticate(b: Broker) -> Handler:
    from broker.server.handlers.security import refuse_authenticate

    return refuse_authenticate


# --- groups ---


def _member_requests(api_key: ApiKey, b: Broker) -> Handler:
    from broker.server.handlers.groups.members import MemberRequests

    return MemberRequests(b.groups, api_key).handle


def _heartbeat(b: Broker) -> Handler:
    from broker.server.handlers.groups.members import Heartbeats

    return Heartbeats(b.groups).handle


def _leave_group(b: Broker) -> Handler:
    from broker.server.handlers.groups.members import LeaveGroup

    return LeaveGroup(b.groups).handle


def _share_group_heartbeat(b: Broker) -> Handler:
    from broker.server.handlers.groups.members import ShareGroupHeartbeats

    return ShareGroupHeartbeats(b.groups, b.auto_topics).handle


def _streams_group_heartbeat(b: Broker) -> Handler:
    from broker.server.handlers.groups.members import StreamsGroupHeartbeats

    return StreamsGroupHeartbeats(b.groups, b.internal_topics, b.quotas.creations, b.guard).handle


def _describe_groups(api_key: ApiKey, b: Broker) -> Handler:
    from broker.server.handlers.groups.describe import DescribeGroups

    return DescribeGroups(b.groups, api_key).handle


def _list_groups(b: Broker) -> Handler:
    from broker.server.handlers.groups.describe import ListGroups

    return ListGroups(b.groups).handle


def _delete_groups(b: Broker) -> Handler:
    from broker.server.handlers.groups.delete_groups import DeleteGroups

    return DeleteGroups(b.groups, b.share_state_calls).handle


def _offset_commit(b: Broker) -> Handler:
    from broker.server.handlers.groups.offset_commit import OffsetCommit

    return OffsetCommit(b.metadata, b.groups).handle


def _offset_fetch(b: Broker) -> Handler:
    from broker.server.handlers.groups.offset_fetch import OffsetFetch

    return OffsetFetch(b.metadata, b.groups).handle


def _offset_delete(b: Broker) -> Handler:
    from broker.server.handlers.groups.delete_groups import OffsetDelete

    return OffsetDelete(b.metadata, b.groups).handle


def _describe_share_group_offsets(b: Broker) -> Handler:
    from broker.server.handlers.groups.share_group_offsets import DescribeShareGroupOffsets

    return DescribeShareGroupOffsets(
        b.groups, b.share_state_calls, b.end_offsets, b.metadata
    ).handle


def _alter_share_group_offsets(b: Broker) -> Handler:
    from broker.server.handlers.groups.share_group_offsets import AlterShareGroupOffsets

    return AlterShareGroupOffsets(b.groups, b.share_state_calls, b.auto_topics).handle


def _delete_share_group_offsets(b: Broker) -> Handler:
    from broker.server.handlers.groups.share_group_offsets import DeleteShareGroupOffsets

    return DeleteShareGroupOffsets(b.groups, b.share_state_calls).handle


def _share_state(api_key: ApiKey, b: Broker) -> Handler:
    from broker.server.handlers.share_state import ShareStateRequests

    return ShareStateRequests(b.share_states, api_key).handle


def _write_share_state(b: Broker) -> Handler:
    from broker.server.handlers.share_state import WriteShareGroupState

    return WriteShareGroupState(b.share_states).handle


# --- transactions ---


def _init_producer_id(b: Broker) -> Handler:
    from broker.server.handlers.transactions.init_producer_id import InitProducerId

    return InitProducerId(b.producer_ids, b.transactions).handle


def _add_partitions_to_txn(b: Broker) -> Handler:
    from broker.server.handlers.transactions.add_partitions_to_txn import AddPartitionsToTxn

    return AddPartitionsToTxn(b.metadata, b.transactions).handle


def _add_offsets_to_txn(b: Broker) -> Handler:
    from broker.server.handlers.transactions.add_partitions_to_txn import AddOffsetsToTxn

    return AddOffsetsToTxn(b.metadata, b.auto_topics, b.transactions).handle


def _end_txn(b: Broker) -> Handler:
    from broker.server.handlers.transactions.end_txn import EndTxn

    return EndTxn(b.transactions).handle


def _write_txn_markers(b: Broker) -> Handler:
    from broker.server.handlers.transactions.write_txn_markers import WriteTxnMarkers

    return WriteTxnMarkers(b.config, b.led_logs, b.parked_produces, b.groups).handle


def _txn_offset_commit(b: Broker) -> Handler:
    from broker.server.handlers.transactions.txn_offset_commit import TxnOffsetCommit

    return TxnOffsetCommit(b.metadata, b.groups, b.verifier, b.clock).handle


def _describe_producers(b: Broker) -> Handler:
    from broker.server.handlers.transactions.describe import DescribeProducers

    return DescribeProducers(b.partitions).handle


def _describe_transactions(b: Broker) -> Handler:
    from broker.server.handlers.transactions.describe import DescribeTransactions

    return DescribeTransactions(b.transactions).handle


def _list_transactions(b: Broker) -> Handler:
    from broker.server.handlers.transactions.describe import ListTransactions

    return ListTransactions(b.clock, b.transactions).handle


APIS: Final[dict[ApiKey, MakeHandler]] = {
    ApiKey.PRODUCE: _produce,
    ApiKey.FETCH: lambda b: _fetches(b).handle,
    ApiKey.LIST_OFFSETS: _list_offsets,
    ApiKey.METADATA: _metadata,
    ApiKey.OFFSET_COMMIT: _offset_commit,
    ApiKey.OFFSET_FETCH: _offset_fetch,
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.JOIN_GROUP: partial(_member_requests, ApiKey.JOIN_GROUP),
    ApiKey.HEARTBEAT: _heartbeat,
    ApiKey.LEAVE_GROUP: _leave_group,
    ApiKey.SYNC_GROUP: partial(_member_requests, ApiKey.SYNC_GROUP),
    ApiKey.DESCRIBE_GROUPS: partial(_describe_groups, ApiKey.DESCRIBE_GROUPS),
    ApiKey.LIST_GROUPS: _list_groups,
    ApiKey.SASL_HANDSHAKE: _sasl_handshake,
    ApiKey.API_VERSIONS: _api_versions,
    ApiKey.CREATE_TOPICS: _forward,
    ApiKey.DELETE_TOPICS: _forward,
    ApiKey.DELETE_RECORDS: _delete_records,
    ApiKey.INIT_PRODUCER_ID: _init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _offset_for_leader_epoch,
    ApiKey.ADD_PARTITIONS_TO_TXN: _add_partitions_to_txn,
    ApiKey.ADD_OFFSETS_TO_TXN: _add_offsets_to_txn,
    ApiKey.END_TXN: _end_txn,
    ApiKey.WRITE_TXN_MARKERS: _write_txn_markers,
    ApiKey.TXN_OFFSET_COMMIT: _txn_offset_commit,
    ApiKey.DESCRIBE_ACLS: lambda b: _describe_security(b).acls,
    ApiKey.CREATE_ACLS: _change_acls,
    ApiKey.DELETE_ACLS: _change_acls,
    ApiKey.DESCRIBE_CONFIGS: _describe_configs,
    ApiKey.ALTER_CONFIGS: _alter_configs,
    ApiKey.ALTER_REPLICA_LOG_DIRS: _alter_replica_log_dirs,
    ApiKey.DESCRIBE_LOG_DIRS: _describe_log_dirs,
    ApiKey.SASL_AUTHENTICATE: _sasl_authenticate,
    ApiKey.CREATE_PARTITIONS: _forward,
    ApiKey.CREATE_DELEGATION_TOKEN: _change_tokens,
    ApiKey.RENEW_DELEGATION_TOKEN: _change_tokens,
    ApiKey.EXPIRE_DELEGATION_TOKEN: _change_tokens,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: lambda b: _describe_security(b).tokens,
    ApiKey.DELETE_GROUPS: _delete_groups,
    ApiKey.ELECT_LEADERS: _forward,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _incremental_alter_configs,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _forward,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _forward,
    ApiKey.OFFSET_DELETE: _offset_delete,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: _forward,
    ApiKey.ALTER_CLIENT_QUOTAS: _forward,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: lambda b: _describe_security(b).credentials,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _forward,
    ApiKey.DESCRIBE_QUORUM: _forward,
    ApiKey.UPDATE_FEATURES: _forward,
    ApiKey.DESCRIBE_CLUSTER: _describe_cluster,
    ApiKey.DESCRIBE_PRODUCERS: _describe_producers,
    ApiKey.UNREGISTER_BROKER: _forward,
    ApiKey.DESCRIBE_TRANSACTIONS: _describe_transactions,
    ApiKey.LIST_TRANSACTIONS: _list_transactions,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: partial(_member_requests, ApiKey.CONSUMER_GROUP_HEARTBEAT),
    ApiKey.CONSUMER_GROUP_DESCRIBE: partial(_describe_groups, ApiKey.CONSUMER_GROUP_DESCRIBE),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: _get_telemetry_subscriptions,
    ApiKey.PUSH_TELEMETRY: _push_telemetry,
    ApiKey.LIST_CONFIG_RESOURCES: _list_config_resources,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _describe_topic_partitions,
    ApiKey.SHARE_GROUP_HEARTBEAT: _share_group_heartbeat,
    ApiKey.SHARE_GROUP_DESCRIBE: partial(_describe_groups, ApiKey.SHARE_GROUP_DESCRIBE),
    ApiKey.SHARE_FETCH: _share_fetch,
    ApiKey.SHARE_ACKNOWLEDGE: _share_acknowledge,
    ApiKey.ADD_RAFT_VOTER: _forward,
    ApiKey.REMOVE_RAFT_VOTER: _forward,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: partial(_share_state, ApiKey.INITIALIZE_SHARE_GROUP_STATE),
    ApiKey.READ_SHARE_GROUP_STATE: partial(_share_state, ApiKey.READ_SHARE_GROUP_STATE),
    ApiKey.WRITE_SHARE_GROUP_STATE: _write_share_state,
    ApiKey.DELETE_SHARE_GROUP_STATE: partial(_share_state, ApiKey.DELETE_SHARE_GROUP_STATE),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: partial(
        _share_state, ApiKey.READ_SHARE_GROUP_STATE_SUMMARY
    ),
    ApiKey.STREAMS_GROUP_HEARTBEAT: _streams_group_heartbeat,
    ApiKey.STREAMS_GROUP_DESCRIBE: partial(_describe_groups, ApiKey.STREAMS_GROUP_DESCRIBE),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: _describe_share_group_offsets,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: _alter_share_group_offsets,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: _delete_share_group_offsets,
}

SERVED_APIS: Final = frozenset(APIS)
"""The APIs that are served; those of client metrics are advertised only when they are of use."""


def make_handler(broker: Broker, api_key: int) -> Handler | None:
    """Make the handler of an API, None when it is not served."""
    try:
        make = APIS[ApiKey(api_key)]
    except (ValueError, KeyError):
        return None
    handle = make(broker)
    if broker.guard is not None:
        handle = broker.guard.guarded(api_key, handle)
    return gated(api_key, handle, lambda: broker.metadata.image.features)


def make_holding_fetch(broker: Broker) -> Handler:
    """Make the handler that answers a Fetch without records: its client is above its quota."""
    hold = _fetches(broker).hold
    return hold if broker.guard is None else broker.guard.guarded(ApiKey.FETCH, hold)
