"""The APIs that a broker serves, and the parts that each handler works on.

A row names the module in `handlers` and the arguments of its class, in the order and with the names
of its parameters (tests/broker/server/test_apis.py). A handler is imported and made at the first
request of its API, so that a broker starts fast and an idle one is small.
"""

from collections.abc import Callable
from importlib import import_module

from broker.server.broker import Broker
from broker.server.cluster.feature_apis import gated
from broker.server.network.dispatch import Handler
from common.kafka.protocol.api_keys import ApiKey

Row = tuple[str, Callable[[Broker], tuple[object, ...]]]


def _groups(broker: Broker) -> tuple[object, ...]:
    return (broker.groups,)


def _settings_changes(broker: Broker) -> tuple[object, ...]:
    return broker.own_settings, broker.metadata, broker.ask, broker.waits, broker.partitions


def _share_states(broker: Broker) -> tuple[object, ...]:
    return (broker.share_states,)


def _transactions(broker: Broker) -> tuple[object, ...]:
    return (broker.transactions,)


def _nothing(broker: Broker) -> tuple[object, ...]:
    return ()


def _telemetry(broker: Broker) -> tuple[object, ...]:
    return (broker.telemetry,)


def _log(broker: Broker) -> tuple[object, ...]:
    return broker.partitions, broker.failures


FORWARD: Row = "cluster.forward", lambda b: (b.metadata, b.ask, b.waits, b.partitions)
"""A row for an API that the controller decides."""

CHANGE_ACLS: Row = "cluster.change_acls", lambda b: (b.config, b.ask)

FORWARD_TOKEN: Row = (
    "cluster.forward_token",
    lambda b: (b.config, b.metadata, b.ask, b.waits),
)

APIS: dict[ApiKey, Row] = {
    ApiKey.PRODUCE: (
        "produce.produce",
        lambda b: (b.config, b.led_logs, b.parked_produces, b.metadata, b.metrics, b.verifier),
    ),
    ApiKey.FETCH: (
        "fetch.fetch",
        lambda b: (b.config, b.led_logs, b.parked_fetches, b.fetch_sessions, b.metadata, b.metrics),
    ),
    ApiKey.LIST_OFFSETS: ("fetch.list_offsets", _log),
    ApiKey.METADATA: (
        "topics.metadata",
        lambda b: (b.config, b.metadata, b.auto_topics, b.departures),
    ),
    ApiKey.OFFSET_COMMIT: ("groups.offset_commit", lambda b: (b.metadata, b.groups)),
    ApiKey.OFFSET_FETCH: ("groups.offset_fetch", lambda b: (b.metadata, b.groups)),
    ApiKey.FIND_COORDINATOR: (
        "cluster.find_coordinator",
        lambda b: (b.metadata, b.auto_topics, b.departures),
    ),
    ApiKey.JOIN_GROUP: ("groups.join_group", _groups),
    ApiKey.HEARTBEAT: ("groups.heartbeat", _groups),
    ApiKey.LEAVE_GROUP: ("groups.leave_group", _groups),
    ApiKey.SYNC_GROUP: ("groups.sync_group", _groups),
    ApiKey.DESCRIBE_GROUPS: ("groups.describe_groups", _groups),
    ApiKey.LIST_GROUPS: ("groups.list_groups", _groups),
    ApiKey.API_VERSIONS: (
        "cluster.api_versions",
        lambda b: (SERVED_APIS, b.metadata, b.telemetry),
    ),
    ApiKey.CREATE_TOPICS: FORWARD,
    ApiKey.DELETE_TOPICS: FORWARD,
    ApiKey.DELETE_RECORDS: (
        "topics.delete_records",
        lambda b: (b.partitions, b.failures, b.parked_deletions),
    ),
    ApiKey.INIT_PRODUCER_ID: (
        "transactions.init_producer_id",
        lambda b: (b.producer_ids, b.transactions),
    ),
    ApiKey.WRITE_TXN_MARKERS: (
        "transactions.write_txn_markers",
        lambda b: (b.config, b.led_logs, b.parked_produces, b.groups),
    ),
    ApiKey.TXN_OFFSET_COMMIT: (
        "transactions.txn_offset_commit",
        lambda b: (b.metadata, b.groups, b.verifier, b.clock),
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: ("fetch.offset_for_leader_epoch", lambda b: (b.partitions,)),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        "transactions.add_partitions_to_txn",
        lambda b: (b.metadata, b.transactions),
    ),
    ApiKey.ADD_OFFSETS_TO_TXN: (
        "transactions.add_offsets_to_txn",
        lambda b: (b.metadata, b.auto_topics, b.transactions),
    ),
    ApiKey.END_TXN: ("transactions.end_txn", _transactions),
    ApiKey.SASL_HANDSHAKE: ("cluster.sasl_handshake", _nothing),
    ApiKey.SASL_AUTHENTICATE: ("cluster.sasl_authenticate", _nothing),
    ApiKey.DESCRIBE_ACLS: ("cluster.describe_acls", lambda b: (b.config, b.metadata)),
    ApiKey.CREATE_ACLS: CHANGE_ACLS,
    ApiKey.DELETE_ACLS: CHANGE_ACLS,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (
        "cluster.describe_user_scram_credentials",
        lambda b: (b.metadata,),
    ),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: FORWARD,
    ApiKey.CREATE_DELEGATION_TOKEN: FORWARD_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN: FORWARD_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN: FORWARD_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: (
        "cluster.describe_delegation_token",
        lambda b: (b.config, b.metadata),
    ),
    ApiKey.DESCRIBE_CONFIGS: ("cluster.describe_configs", lambda b: (b.settings, b.metadata)),
    ApiKey.ALTER_CONFIGS: ("cluster.alter_configs", _settings_changes),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (
        "cluster.alter_replica_log_dirs",
        lambda b: (b.partitions, b.mover, b.failures),
    ),
    ApiKey.DESCRIBE_LOG_DIRS: ("cluster.describe_log_dirs", lambda b: (b.log_directories,)),
    ApiKey.CREATE_PARTITIONS: FORWARD,
    ApiKey.DELETE_GROUPS: ("groups.delete_groups", lambda b: (b.groups, b.share_state_calls)),
    ApiKey.ELECT_LEADERS: FORWARD,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: ("cluster.incremental_alter_configs", _settings_changes),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: FORWARD,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: FORWARD,
    ApiKey.OFFSET_DELETE: ("groups.offset_delete", lambda b: (b.metadata, b.groups)),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: FORWARD,
    ApiKey.ALTER_CLIENT_QUOTAS: FORWARD,
    ApiKey.DESCRIBE_QUORUM: FORWARD,
    ApiKey.UPDATE_FEATURES: FORWARD,
    ApiKey.UNREGISTER_BROKER: FORWARD,
    ApiKey.ADD_RAFT_VOTER: FORWARD,
    ApiKey.REMOVE_RAFT_VOTER: FORWARD,
    ApiKey.DESCRIBE_CLUSTER: ("cluster.describe_cluster", lambda b: (b.config, b.metadata)),
    ApiKey.DESCRIBE_PRODUCERS: ("transactions.describe_producers", lambda b: (b.partitions,)),
    ApiKey.DESCRIBE_TRANSACTIONS: ("transactions.describe_transactions", _transactions),
    ApiKey.LIST_TRANSACTIONS: (
        "transactions.list_transactions",
        lambda b: (b.clock, b.transactions),
    ),
    ApiKey.LIST_CONFIG_RESOURCES: ("cluster.list_config_resources", lambda b: (b.metadata,)),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: ("cluster.get_telemetry_subscriptions", _telemetry),
    ApiKey.PUSH_TELEMETRY: ("cluster.push_telemetry", _telemetry),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: ("groups.consumer_group_heartbeat", _groups),
    ApiKey.CONSUMER_GROUP_DESCRIBE: ("groups.consumer_group_describe", _groups),
    ApiKey.STREAMS_GROUP_HEARTBEAT: (
        "groups.streams_group_heartbeat",
        lambda b: (b.groups, b.internal_topics, b.guard),
    ),
    ApiKey.STREAMS_GROUP_DESCRIBE: ("groups.streams_group_describe", _groups),
    ApiKey.SHARE_GROUP_HEARTBEAT: (
        "share_groups.share_group_heartbeat",
        lambda b: (b.groups, b.auto_topics),
    ),
    ApiKey.SHARE_GROUP_DESCRIBE: ("share_groups.share_group_describe", _groups),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (
        "share_groups.describe_share_group_offsets",
        lambda b: (b.groups, b.share_state_calls, b.end_offsets, b.metadata),
    ),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: (
        "share_groups.alter_share_group_offsets",
        lambda b: (b.groups, b.share_state_calls, b.auto_topics),
    ),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: (
        "share_groups.delete_share_group_offsets",
        lambda b: (b.groups, b.share_state_calls),
    ),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: (
        "share_state.initialize_share_group_state",
        _share_states,
    ),
    ApiKey.SHARE_FETCH: (
        "share.share_fetch",
        lambda b: (
            *(b.config, b.shares, b.parked_share_fetches),
            *(b.share_admission, b.metrics, b.loop),
        ),
    ),
    ApiKey.SHARE_ACKNOWLEDGE: ("share.share_acknowledge", lambda b: (b.shares, b.share_admission)),
    ApiKey.READ_SHARE_GROUP_STATE: ("share_state.read_share_group_state", _share_states),
    ApiKey.WRITE_SHARE_GROUP_STATE: ("share_state.write_share_group_state", _share_states),
    ApiKey.DELETE_SHARE_GROUP_STATE: ("share_state.delete_share_group_state", _share_states),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: (
        "share_state.read_share_group_state_summary",
        _share_states,
    ),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (
        "topics.describe_topic_partitions",
        lambda b: (b.metadata, b.rights_of),
    ),
}

SERVED_APIS: frozenset[ApiKey] = frozenset(APIS)
"""The APIs that are served; those of client metrics are advertised only when they are of use."""


def handler_class(name: str) -> type:
    """Import a handler module and return its class: `ListOffsets` of `fetch.list_offsets`."""
    module = import_module(f"broker.server.handlers.{name}")
    found = getattr(module, name.split(".")[-1].title().replace("_", ""))
    assert isinstance(found, type), found
    return found


def make_handler(broker: Broker, api_key: int) -> Handler | None:
    """Make the handler of an API, None when it is not served."""
    try:
        name, parts = APIS[ApiKey(api_key)]
    except (ValueError, KeyError):
        return None
    handle: Handler = handler_class(name)(*parts(broker)).handle
    if broker.guard is not None:
        handle = broker.guard.guarded(api_key, handle)
    return gated(api_key, handle, lambda: broker.metadata.image.features)


def make_holding_fetch(broker: Broker) -> Handler:
    """Make the handler that answers a Fetch without records: its client is above its quota."""
    name, parts = APIS[ApiKey.FETCH]
    hold: Handler = handler_class(name)(*parts(broker)).hold
    return hold if broker.guard is None else broker.guard.guarded(ApiKey.FETCH, hold)
