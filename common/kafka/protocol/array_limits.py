"""How many entries each array of each request may have.

A request with more is refused as Kafka refuses a malformed one: the connection is closed. The
decoder counts the entries before it makes anything of them. Of an array inside the entries of
another array the entries are counted together: the limit of `topics.partitions` is for all
partitions of a request, in however many topics.

An array that is not listed has DEFAULT_LIMIT. Another limit has its reason beside it: a client or
a broker that sends more, or entries that cost much.
"""

from typing import Final

from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.message import Message

DEFAULT_LIMIT: Final = 10_000

PARTITIONS_OF_A_CLIENT: Final = 20_000
"""A client names every partition it reads or writes whose leader or coordinator is one broker.

A Kafka broker is recommended to have 4,000 replicas, and one of this project is measured with
10,000; this is twice as much. A Java producer's request of 1 MiB (`max.request.size`) has room for
about 14,000 batches of one record.
"""
REPLICAS_OF_A_BROKER: Final = 50_000
"""A broker names every replica that it has in common with another broker, or leads."""
TOPICS_OF_A_CLUSTER: Final = 50_000
"""Administration tools first list all topics, and then name every one of them in one request."""
SETTINGS: Final = 30_000
"""MirrorMaker 2 sets all settings of all topics in one request; most values do not change."""
BROKER_IDS: Final = 100_000
"""The replicas of 10,000 partitions, ten of each."""
ACKNOWLEDGEMENTS: Final = 100_000
"""A member of a share group names each record of its last poll, 500 by default, and those of
earlier ones; a partition has at most 10,000 records in flight for a group."""

CLIENT_PARTITIONS = dict.fromkeys(("topics", "topics.partitions"), PARTITIONS_OF_A_CLIENT)
ACKNOWLEDGED_PARTITIONS = CLIENT_PARTITIONS | dict.fromkeys(
    (
        "topics.partitions.acknowledgement_batches",
        "topics.partitions.acknowledgement_batches.acknowledge_types",
    ),
    ACKNOWLEDGEMENTS,
)
BROKER_PARTITIONS = dict.fromkeys(("topics", "topics.partitions"), REPLICAS_OF_A_BROKER)

LIMITS: Final[dict[ApiKey, dict[str, int]]] = {
    # A producer sends the next batch of every partition of a broker (franz-go: up to 100 MiB).
    ApiKey.PRODUCE: {
        "topic_data": PARTITIONS_OF_A_CLIENT,
        "topic_data.partition_data": PARTITIONS_OF_A_CLIENT,
    },
    # The first request of a follower's session names all replicas of one leader; the first after a
    # reassignment takes as many out.
    ApiKey.FETCH: {
        **BROKER_PARTITIONS,
        "forgotten_topics_data": REPLICAS_OF_A_BROKER,
        "forgotten_topics_data.partitions": REPLICAS_OF_A_BROKER,
    },
    # A consumer's start, and `kafka-get-offsets` for all topics: a request for each leader.
    ApiKey.LIST_OFFSETS: CLIENT_PARTITIONS,
    # A consumer checks the position of everything it reads after a change of leaders (KIP-320).
    ApiKey.OFFSET_FOR_LEADER_EPOCH: CLIENT_PARTITIONS,
    # One member may read all partitions of a cluster (mirrors, archives), and has one coordinator.
    ApiKey.OFFSET_COMMIT: CLIENT_PARTITIONS,
    ApiKey.TXN_OFFSET_COMMIT: CLIENT_PARTITIONS,
    # The same, and a lag exporter that names all partitions of all topics for each group.
    ApiKey.OFFSET_FETCH: {
        "topics": PARTITIONS_OF_A_CLIENT,
        "topics.partition_indexes": REPLICAS_OF_A_BROKER,
        "groups.topics": PARTITIONS_OF_A_CLIENT,
        "groups.topics.partition_indexes": REPLICAS_OF_A_BROKER,
    },
    # A member of a group names what it owns; one that has just joined may own nearly everything.
    ApiKey.CONSUMER_GROUP_HEARTBEAT: {"topic_partitions.partitions": 5 * DEFAULT_LIMIT},
    # A consumer or producer with a pattern refreshes all topics it knows; so do most consoles.
    ApiKey.METADATA: {"topics": TOPICS_OF_A_CLUSTER},
    # `kafka-topics --describe`: the Java client names all topics again for each page (KIP-966).
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: {"topics": TOPICS_OF_A_CLUSTER},
    # `kafka-configs --describe` and MirrorMaker 2: all topics in one request.
    ApiKey.DESCRIBE_CONFIGS: {
        "resources": TOPICS_OF_A_CLUSTER,
        "resources.configuration_keys": TOPICS_OF_A_CLUSTER,
    },
    ApiKey.INCREMENTAL_ALTER_CONFIGS: {"resources.configs": SETTINGS},
    ApiKey.ALTER_CONFIGS: {"resources.configs": SETTINGS},
    # Numbers only. What is made of them counts the records it would write.
    ApiKey.CREATE_TOPICS: {"topics.assignments.broker_ids": BROKER_IDS},
    ApiKey.CREATE_PARTITIONS: {"topics.assignments.broker_ids": BROKER_IDS},
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: {"topics.partitions.replicas": BROKER_IDS},
    # A producer of many partitions; a broker that verifies what a Produce of many brings (KIP-890).
    ApiKey.ADD_PARTITIONS_TO_TXN: {
        "transactions.topics": PARTITIONS_OF_A_CLIENT,
        "transactions.topics.partitions": PARTITIONS_OF_A_CLIENT,
        "v3_and_below_topics": PARTITIONS_OF_A_CLIENT,
        "v3_and_below_topics.partitions": PARTITIONS_OF_A_CLIENT,
    },
    # A coordinator ends many transactions at once, each with all its partitions of one leader.
    ApiKey.WRITE_TXN_MARKERS: {
        "markers.topics": REPLICAS_OF_A_BROKER,
        "markers.topics.partition_indexes": REPLICAS_OF_A_BROKER,
    },
    # When a broker is gone, each other broker takes it out of all in-sync sets that it leads.
    ApiKey.ALTER_PARTITION: {
        **BROKER_PARTITIONS,
        "topics.partitions.new_isr": 3 * REPLICAS_OF_A_BROKER,
        "topics.partitions.new_isr_with_epochs": 3 * REPLICAS_OF_A_BROKER,
    },
    # A session's first request names all partitions that one broker leads for a member.
    ApiKey.SHARE_FETCH: {
        **ACKNOWLEDGED_PARTITIONS,
        "forgotten_topics_data": PARTITIONS_OF_A_CLIENT,
        "forgotten_topics_data.partitions": PARTITIONS_OF_A_CLIENT,
    },
    ApiKey.SHARE_ACKNOWLEDGE: ACKNOWLEDGED_PARTITIONS,
    # A leader names the partitions of a group whose state has the same coordinator.
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: BROKER_PARTITIONS,
    ApiKey.READ_SHARE_GROUP_STATE: BROKER_PARTITIONS,
    ApiKey.WRITE_SHARE_GROUP_STATE: {
        **BROKER_PARTITIONS,
        "topics.partitions.state_batches": ACKNOWLEDGEMENTS,
    },
    ApiKey.DELETE_SHARE_GROUP_STATE: BROKER_PARTITIONS,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: BROKER_PARTITIONS,
    # The request is decoded twice: at the broker, and out of its Envelope at the controller.
    ApiKey.CREATE_DELEGATION_TOKEN: {"renewers": 1_000},
    # As for OffsetFetch: a lag exporter names all partitions of all topics for each group.
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: {
        "groups.topics": PARTITIONS_OF_A_CLIENT,
        "groups.topics.partitions": PARTITIONS_OF_A_CLIENT,
    },
}


def limits_of(message: type[Message]) -> dict[str, int] | None:
    """Return the limits of a request that differ from DEFAULT_LIMIT; None for any other message.

    Answers and records come from this cluster's own nodes, and may be of any size.
    """
    if message.__api_key__ < 0 or not message.__name__.endswith("Request"):
        return None
    return LIMITS.get(ApiKey(message.__api_key__), {})
