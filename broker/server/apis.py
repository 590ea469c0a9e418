"""Which APIs a broker serves, and what the handler of each works on.

A row names the module in `handlers` and the parts its class is made of, in the order of its
parameters and under their names (tests/broker/server/test_apis.py). A handler is imported and made
at the first request of its API: a broker starts fast and an idle one is small.
"""

from collections.abc import Callable
from importlib import import_module

from broker.protocol.api_keys import ApiKey
from broker.server.broker import Broker
from broker.server.network.dispatch import Handler

Row = tuple[str, Callable[[Broker], tuple[object, ...]]]


def _groups(broker: Broker) -> tuple[object, ...]:
    return (broker.groups,)


def _transactions(broker: Broker) -> tuple[object, ...]:
    return (broker.transactions,)


def _nothing(broker: Broker) -> tuple[object, ...]:
    return ()


def _log(broker: Broker) -> tuple[object, ...]:
    return broker.partitions, broker.failures


FORWARD: Row = "forward", lambda b: (b.metadata, b.ask, b.waits, b.partitions)
"""The controller decides."""

APIS: dict[ApiKey, Row] = {
    ApiKey.PRODUCE: (
        "produce",
        lambda b: (b.config, b.led_logs, b.parked_produces, b.metadata, b.metrics, b.verifier),
    ),
    ApiKey.FETCH: (
        "fetch",
        lambda b: (b.config, b.led_logs, b.parked_fetches, b.fetch_sessions, b.metadata, b.metrics),
    ),
    ApiKey.LIST_OFFSETS: ("list_offsets", _log),
    ApiKey.METADATA: (
        "metadata",
        lambda b: (b.config, b.metadata, b.auto_topics, b.departures),
    ),
    ApiKey.OFFSET_COMMIT: ("offset_commit", lambda b: (b.metadata, b.groups)),
    ApiKey.OFFSET_FETCH: ("offset_fetch", lambda b: (b.metadata, b.groups)),
    ApiKey.FIND_COORDINATOR: (
        "find_coordinator",
        lambda b: (b.metadata, b.auto_topics, b.departures),
    ),
    ApiKey.JOIN_GROUP: ("join_group", _groups),
    ApiKey.HEARTBEAT: ("heartbeat", _groups),
    ApiKey.LEAVE_GROUP: ("leave_group", _groups),
    ApiKey.SYNC_GROUP: ("sync_group", _groups),
    ApiKey.DESCRIBE_GROUPS: ("describe_groups", _groups),
    ApiKey.LIST_GROUPS: ("list_groups", _groups),
    ApiKey.API_VERSIONS: ("api_versions", lambda b: (SERVED_APIS, b.metadata)),
    ApiKey.CREATE_TOPICS: FORWARD,
    ApiKey.DELETE_TOPICS: FORWARD,
    ApiKey.DELETE_RECORDS: (
        "delete_records",
        lambda b: (b.partitions, b.failures, b.parked_deletions),
    ),
    ApiKey.INIT_PRODUCER_ID: ("init_producer_id", lambda b: (b.producer_ids, b.transactions)),
    ApiKey.WRITE_TXN_MARKERS: (
        "write_txn_markers",
        lambda b: (b.config, b.led_logs, b.parked_produces, b.groups),
    ),
    ApiKey.TXN_OFFSET_COMMIT: (
        "txn_offset_commit",
        lambda b: (b.metadata, b.groups, b.verifier, b.clock),
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: ("offset_for_leader_epoch", lambda b: (b.partitions,)),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        "add_partitions_to_txn",
        lambda b: (b.metadata, b.transactions),
    ),
    ApiKey.ADD_OFFSETS_TO_TXN: (
        "add_offsets_to_txn",
        lambda b: (b.metadata, b.auto_topics, b.transactions),
    ),
    ApiKey.END_TXN: ("end_txn", _transactions),
    ApiKey.DESCRIBE_ACLS: ("describe_acls", _nothing),
    ApiKey.CREATE_ACLS: ("create_acls", _nothing),
    ApiKey.DELETE_ACLS: ("delete_acls", _nothing),
    ApiKey.DESCRIBE_CONFIGS: ("describe_configs", lambda b: (b.settings, b.metadata)),
    ApiKey.ALTER_CONFIGS: FORWARD,
    ApiKey.ALTER_REPLICA_LOG_DIRS: (
        "alter_replica_log_dirs",
        lambda b: (b.partitions, b.mover, b.failures),
    ),
    ApiKey.DESCRIBE_LOG_DIRS: ("describe_log_dirs", lambda b: (b.log_directories,)),
    ApiKey.CREATE_PARTITIONS: FORWARD,
    ApiKey.DELETE_GROUPS: ("delete_groups", _groups),
    ApiKey.ELECT_LEADERS: FORWARD,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: FORWARD,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: FORWARD,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: FORWARD,
    ApiKey.OFFSET_DELETE: ("offset_delete", lambda b: (b.metadata, b.groups)),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: FORWARD,
    ApiKey.ALTER_CLIENT_QUOTAS: FORWARD,
    ApiKey.DESCRIBE_QUORUM: FORWARD,
    ApiKey.UPDATE_FEATURES: FORWARD,
    ApiKey.UNREGISTER_BROKER: FORWARD,
    ApiKey.DESCRIBE_CLUSTER: ("describe_cluster", lambda b: (b.config, b.metadata)),
    ApiKey.DESCRIBE_PRODUCERS: ("describe_producers", lambda b: (b.partitions,)),
    ApiKey.DESCRIBE_TRANSACTIONS: ("describe_transactions", _transactions),
    ApiKey.LIST_TRANSACTIONS: ("list_transactions", lambda b: (b.clock, b.transactions)),
    ApiKey.LIST_CONFIG_RESOURCES: ("list_config_resources", lambda b: (b.metadata,)),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: ("consumer_group_heartbeat", _groups),
    ApiKey.CONSUMER_GROUP_DESCRIBE: ("consumer_group_describe", _groups),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: ("describe_topic_partitions", lambda b: (b.metadata,)),
}

SERVED_APIS: frozenset[ApiKey] = frozenset(APIS)
"""What is served and advertised."""


def handler_class(name: str) -> type:
    """Import a handler module and return its class: `ListOffsets` of `list_offsets`."""
    module = import_module(f"broker.server.handlers.{name}")
    found = getattr(module, name.title().replace("_", ""))
    assert isinstance(found, type), found
    return found


def make_handler(broker: Broker, api_key: int) -> Handler | None:
    """Make the handler of an API, None when it is not served."""
    try:
        name, parts = APIS[ApiKey(api_key)]
    except (ValueError, KeyError):
        return None
    handle: Handler = handler_class(name)(*parts(broker)).handle
    return handle
