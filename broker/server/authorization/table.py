"""The check of every API that a broker serves (KIP-11 and those after it)."""

from broker.server.authorization.cluster import (
    check_alter_configs,
    check_alter_replica_log_dirs,
    check_create_delegation_token,
    check_describe_cluster,
    check_describe_configs,
    check_describe_delegation_token,
    check_incremental_alter_configs,
    decided_by_controller,
)
from broker.server.authorization.data import (
    check_delete_records,
    check_describe_producers,
    check_fetch,
    check_list_offsets,
    check_offset_for_leader_epoch,
    check_produce,
)
from broker.server.authorization.groups import (
    check_consumer_group_describe,
    check_consumer_group_heartbeat,
    check_delete_groups,
    check_describe_groups,
    check_list_groups,
    check_offset_commit,
    check_offset_delete,
    check_offset_fetch,
    check_streams_group_describe,
    check_streams_group_heartbeat,
    of_member,
)
from broker.server.authorization.share import (
    check_alter_share_group_offsets,
    check_delete_share_group_offsets,
    check_describe_share_group_offsets,
    check_share_acknowledge,
    check_share_fetch,
    check_share_group_describe,
    check_share_group_heartbeat,
    of_brokers,
)
from broker.server.authorization.topics import (
    check_create_partitions,
    check_create_topics,
    check_delete_topics,
    check_describe_topic_partitions,
    check_metadata,
)
from broker.server.authorization.transactions import (
    check_add_offsets_to_txn,
    check_add_partitions_to_txn,
    check_describe_transactions,
    check_end_txn,
    check_find_coordinator,
    check_init_producer_id,
    check_list_transactions,
    check_txn_offset_commit,
    check_write_txn_markers,
)
from broker.server.authorization.verdicts import Check, always, on_cluster
from common.kafka.acls import AclOperation
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from common.kafka.protocol.messages.describe_acls import DescribeAclsResponse
from common.kafka.protocol.messages.describe_log_dirs import DescribeLogDirsResponse
from common.kafka.protocol.messages.describe_quorum import DescribeQuorumResponse
from common.kafka.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsResponse,
)
from common.kafka.protocol.messages.heartbeat import HeartbeatResponse
from common.kafka.protocol.messages.join_group import JoinGroupResponse
from common.kafka.protocol.messages.leave_group import LeaveGroupResponse
from common.kafka.protocol.messages.list_config_resources import ListConfigResourcesResponse
from common.kafka.protocol.messages.sync_group import SyncGroupResponse

CHECKS: dict[ApiKey, Check] = {
    ApiKey.API_VERSIONS: always,
    ApiKey.SASL_HANDSHAKE: always,
    ApiKey.SASL_AUTHENTICATE: always,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: always,
    ApiKey.PUSH_TELEMETRY: always,
    ApiKey.PRODUCE: check_produce,
    ApiKey.FETCH: check_fetch,
    ApiKey.LIST_OFFSETS: check_list_offsets,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: check_offset_for_leader_epoch,
    ApiKey.DELETE_RECORDS: check_delete_records,
    ApiKey.DESCRIBE_PRODUCERS: check_describe_producers,
    ApiKey.STREAMS_GROUP_HEARTBEAT: check_streams_group_heartbeat,
    ApiKey.STREAMS_GROUP_DESCRIBE: check_streams_group_describe,
    ApiKey.SHARE_GROUP_HEARTBEAT: check_share_group_heartbeat,
    ApiKey.SHARE_GROUP_DESCRIBE: check_share_group_describe,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: check_describe_share_group_offsets,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: check_alter_share_group_offsets,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: check_delete_share_group_offsets,
    ApiKey.SHARE_FETCH: check_share_fetch,
    ApiKey.SHARE_ACKNOWLEDGE: check_share_acknowledge,
    # Groups.
    ApiKey.JOIN_GROUP: of_member(JoinGroupResponse),
    ApiKey.SYNC_GROUP: of_member(SyncGroupResponse),
    ApiKey.HEARTBEAT: of_member(HeartbeatResponse),
    ApiKey.LEAVE_GROUP: of_member(LeaveGroupResponse),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: check_consumer_group_heartbeat,
    ApiKey.CONSUMER_GROUP_DESCRIBE: check_consumer_group_describe,
    ApiKey.DESCRIBE_GROUPS: check_describe_groups,
    ApiKey.LIST_GROUPS: check_list_groups,
    ApiKey.DELETE_GROUPS: check_delete_groups,
    ApiKey.OFFSET_COMMIT: check_offset_commit,
    ApiKey.OFFSET_FETCH: check_offset_fetch,
    ApiKey.OFFSET_DELETE: check_offset_delete,
    # Transactions.
    ApiKey.FIND_COORDINATOR: check_find_coordinator,
    ApiKey.INIT_PRODUCER_ID: check_init_producer_id,
    ApiKey.ADD_PARTITIONS_TO_TXN: check_add_partitions_to_txn,
    ApiKey.ADD_OFFSETS_TO_TXN: check_add_offsets_to_txn,
    ApiKey.END_TXN: check_end_txn,
    ApiKey.TXN_OFFSET_COMMIT: check_txn_offset_commit,
    ApiKey.WRITE_TXN_MARKERS: check_write_txn_markers,
    ApiKey.DESCRIBE_TRANSACTIONS: check_describe_transactions,
    ApiKey.LIST_TRANSACTIONS: check_list_transactions,
    # The share coordinator.
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: of_brokers(
        initialize_share_group_state.InitializeShareGroupStateResponse,
        initialize_share_group_state.InitializeStateResult,
        initialize_share_group_state.PartitionResult,
    ),
    ApiKey.READ_SHARE_GROUP_STATE: of_brokers(
        read_share_group_state.ReadShareGroupStateResponse,
        read_share_group_state.ReadStateResult,
        read_share_group_state.PartitionResult,
    ),
    ApiKey.WRITE_SHARE_GROUP_STATE: of_brokers(
        write_share_group_state.WriteShareGroupStateResponse,
        write_share_group_state.WriteStateResult,
        write_share_group_state.PartitionResult,
    ),
    ApiKey.DELETE_SHARE_GROUP_STATE: of_brokers(
        delete_share_group_state.DeleteShareGroupStateResponse,
        delete_share_group_state.DeleteStateResult,
        delete_share_group_state.PartitionResult,
    ),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: of_brokers(
        read_share_group_state_summary.ReadShareGroupStateSummaryResponse,
        read_share_group_state_summary.ReadStateSummaryResult,
        read_share_group_state_summary.PartitionResult,
    ),
    # Topics.
    ApiKey.METADATA: check_metadata,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: check_describe_topic_partitions,
    ApiKey.CREATE_TOPICS: check_create_topics,
    ApiKey.DELETE_TOPICS: check_delete_topics,
    ApiKey.CREATE_PARTITIONS: check_create_partitions,
    # Settings.
    ApiKey.DESCRIBE_CONFIGS: check_describe_configs,
    ApiKey.ALTER_CONFIGS: check_alter_configs,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: check_incremental_alter_configs,
    ApiKey.LIST_CONFIG_RESOURCES: on_cluster(
        AclOperation.DESCRIBE_CONFIGS, ListConfigResourcesResponse
    ),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: decided_by_controller(AclOperation.DESCRIBE_CONFIGS),
    ApiKey.ALTER_CLIENT_QUOTAS: decided_by_controller(AclOperation.ALTER_CONFIGS),
    # Security.
    ApiKey.DESCRIBE_ACLS: on_cluster(AclOperation.DESCRIBE, DescribeAclsResponse),
    ApiKey.CREATE_ACLS: decided_by_controller(AclOperation.ALTER),
    ApiKey.DELETE_ACLS: decided_by_controller(AclOperation.ALTER),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: on_cluster(
        AclOperation.DESCRIBE, DescribeUserScramCredentialsResponse
    ),
    # The controller compares the owner and the renewers with the requester.
    ApiKey.CREATE_DELEGATION_TOKEN: check_create_delegation_token,
    ApiKey.RENEW_DELEGATION_TOKEN: always,
    ApiKey.EXPIRE_DELEGATION_TOKEN: always,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: check_describe_delegation_token,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: decided_by_controller(AclOperation.ALTER),
    # The cluster.
    ApiKey.DESCRIBE_CLUSTER: check_describe_cluster,
    ApiKey.DESCRIBE_QUORUM: on_cluster(AclOperation.DESCRIBE, DescribeQuorumResponse),
    ApiKey.DESCRIBE_LOG_DIRS: on_cluster(AclOperation.DESCRIBE, DescribeLogDirsResponse),
    ApiKey.ALTER_REPLICA_LOG_DIRS: check_alter_replica_log_dirs,
    ApiKey.ELECT_LEADERS: decided_by_controller(AclOperation.ALTER),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: decided_by_controller(AclOperation.ALTER),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: decided_by_controller(AclOperation.DESCRIBE),
    ApiKey.UPDATE_FEATURES: decided_by_controller(AclOperation.ALTER),
    ApiKey.UNREGISTER_BROKER: decided_by_controller(AclOperation.ALTER),
    ApiKey.ADD_RAFT_VOTER: decided_by_controller(AclOperation.ALTER),
    ApiKey.REMOVE_RAFT_VOTER: decided_by_controller(AclOperation.ALTER),
}
