"""Every API by its number, and the versions of those that are declared here.

`API_VERSION_RANGES` is what *can* be decoded; which of these APIs are served is the server's
choice. The maxima are the latest stable versions of Apache Kafka 4.3. The minima are lower than
its own where old versions cost nothing. Produce alone is advertised lower than it is served:
versions 0-2 carry message formats that no longer exist, but librdkafka infers from the advertised
minimum which codecs a broker takes, so Kafka 4 advertises 0 as well and refuses them (KAFKA-18659).

Importing this module imports no message: those are imported with the first request of their API.
"""

from enum import IntEnum
from typing import NamedTuple


class ApiKey(IntEnum):
    """The numbers of Kafka's APIs, with the names of its own `ApiKeys`."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92


class ApiVersions(NamedTuple):
    """The versions of one API: those advertised, those served, those with compact lengths."""

    advertised_min: int
    served_min: int
    max: int
    first_flexible: int


def _api(versions: str, flexible: int | None = None, served_min: int | None = None) -> ApiVersions:
    first, _, last = versions.partition("-")
    lowest, highest = int(first), int(last or first)
    return ApiVersions(
        advertised_min=lowest,
        served_min=lowest if served_min is None else served_min,
        max=highest,
        first_flexible=highest + 1 if flexible is None else flexible,
    )


API_VERSION_RANGES: dict[ApiKey, ApiVersions] = {
    ApiKey.PRODUCE: _api("0-13", flexible=9, served_min=3),
    ApiKey.FETCH: _api("4-18", flexible=12),
    ApiKey.LIST_OFFSETS: _api("0-11", flexible=6),
    ApiKey.METADATA: _api("0-13", flexible=9),
    ApiKey.OFFSET_COMMIT: _api("0-10", flexible=8),
    ApiKey.OFFSET_FETCH: _api("0-10", flexible=6),
    ApiKey.FIND_COORDINATOR: _api("0-6", flexible=3),
    ApiKey.JOIN_GROUP: _api("0-9", flexible=6),
    ApiKey.HEARTBEAT: _api("0-4", flexible=4),
    ApiKey.LEAVE_GROUP: _api("0-5", flexible=4),
    ApiKey.SYNC_GROUP: _api("0-5", flexible=4),
    ApiKey.DESCRIBE_GROUPS: _api("0-6", flexible=5),
    ApiKey.LIST_GROUPS: _api("0-5", flexible=3),
    ApiKey.SASL_HANDSHAKE: _api("0-1"),
    ApiKey.API_VERSIONS: _api("0-4", flexible=3),
    ApiKey.CREATE_TOPICS: _api("0-7", flexible=5),
    ApiKey.DELETE_TOPICS: _api("0-6", flexible=4),
    ApiKey.DELETE_RECORDS: _api("0-2", flexible=2),
    ApiKey.INIT_PRODUCER_ID: _api("0-5", flexible=2),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _api("0-4", flexible=4),
    ApiKey.ADD_PARTITIONS_TO_TXN: _api("0-5", flexible=3),
    ApiKey.ADD_OFFSETS_TO_TXN: _api("0-4", flexible=3),
    ApiKey.END_TXN: _api("0-5", flexible=3),
    ApiKey.WRITE_TXN_MARKERS: _api("0-2", flexible=1),
    ApiKey.TXN_OFFSET_COMMIT: _api("0-5", flexible=3),
    ApiKey.DESCRIBE_ACLS: _api("0-3", flexible=2),
    ApiKey.CREATE_ACLS: _api("0-3", flexible=2),
    ApiKey.DELETE_ACLS: _api("0-3", flexible=2),
    ApiKey.DESCRIBE_CONFIGS: _api("0-4", flexible=4),
    ApiKey.ALTER_CONFIGS: _api("0-2", flexible=2),
    ApiKey.ALTER_REPLICA_LOG_DIRS: _api("0-2", flexible=2),
    ApiKey.DESCRIBE_LOG_DIRS: _api("0-5", flexible=2),
    ApiKey.SASL_AUTHENTICATE: _api("0-2", flexible=2),
    ApiKey.CREATE_PARTITIONS: _api("0-3", flexible=2),
    ApiKey.DELETE_GROUPS: _api("0-2", flexible=2),
    ApiKey.ELECT_LEADERS: _api("0-2", flexible=2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _api("0-1", flexible=1),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _api("0-1", flexible=0),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _api("0", flexible=0),
    ApiKey.OFFSET_DELETE: _api("0"),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: _api("0-1", flexible=1),
    ApiKey.ALTER_CLIENT_QUOTAS: _api("0-1", flexible=1),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _api("0", flexible=0),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _api("0", flexible=0),
    ApiKey.CREATE_DELEGATION_TOKEN: _api("1-3", flexible=2),
    ApiKey.RENEW_DELEGATION_TOKEN: _api("1-2", flexible=2),
    ApiKey.EXPIRE_DELEGATION_TOKEN: _api("1-2", flexible=2),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: _api("1-3", flexible=2),
    ApiKey.ENVELOPE: _api("0", flexible=0),
    ApiKey.VOTE: _api("0-2", flexible=0),
    ApiKey.BEGIN_QUORUM_EPOCH: _api("0-1", flexible=1),
    ApiKey.END_QUORUM_EPOCH: _api("0-1", flexible=1),
    ApiKey.DESCRIBE_QUORUM: _api("0-2", flexible=0),
    ApiKey.ALTER_PARTITION: _api("2-3", flexible=0),
    ApiKey.UPDATE_FEATURES: _api("0-2", flexible=0),
    ApiKey.FETCH_SNAPSHOT: _api("0-1", flexible=0),
    ApiKey.DESCRIBE_CLUSTER: _api("0-2", flexible=0),
    ApiKey.DESCRIBE_PRODUCERS: _api("0", flexible=0),
    ApiKey.BROKER_REGISTRATION: _api("0-4", flexible=0),
    ApiKey.BROKER_HEARTBEAT: _api("0-2", flexible=0),
    ApiKey.UNREGISTER_BROKER: _api("0", flexible=0),
    ApiKey.DESCRIBE_TRANSACTIONS: _api("0", flexible=0),
    ApiKey.LIST_TRANSACTIONS: _api("0-2", flexible=0),
    ApiKey.ALLOCATE_PRODUCER_IDS: _api("0", flexible=0),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _api("0-1", flexible=0),
    ApiKey.CONSUMER_GROUP_DESCRIBE: _api("0-1", flexible=0),
    ApiKey.CONTROLLER_REGISTRATION: _api("0", flexible=0),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: _api("0", flexible=0),
    ApiKey.PUSH_TELEMETRY: _api("0", flexible=0),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: _api("0", flexible=0),
    ApiKey.LIST_CONFIG_RESOURCES: _api("0-1", flexible=0),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _api("0", flexible=0),
    ApiKey.SHARE_GROUP_HEARTBEAT: _api("1", flexible=0),
    ApiKey.SHARE_GROUP_DESCRIBE: _api("1", flexible=0),
    ApiKey.SHARE_FETCH: _api("1-2", flexible=0),
    ApiKey.SHARE_ACKNOWLEDGE: _api("1-2", flexible=0),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: _api("0", flexible=0),
    ApiKey.READ_SHARE_GROUP_STATE: _api("0", flexible=0),
    ApiKey.WRITE_SHARE_GROUP_STATE: _api("0-1", flexible=0),
    ApiKey.DELETE_SHARE_GROUP_STATE: _api("0", flexible=0),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _api("0-1", flexible=0),
    ApiKey.STREAMS_GROUP_HEARTBEAT: _api("0", flexible=0),
    ApiKey.STREAMS_GROUP_DESCRIBE: _api("0", flexible=0),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: _api("0-1", flexible=0),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: _api("0", flexible=0),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: _api("0", flexible=0),
    ApiKey.ADD_RAFT_VOTER: _api("0-1", flexible=0),
    ApiKey.REMOVE_RAFT_VOTER: _api("0", flexible=0),
    ApiKey.UPDATE_RAFT_VOTER: _api("0", flexible=0),
}
