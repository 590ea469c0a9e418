"""The lines the command-line tools print, as those of Apache Kafka 4.3 do."""

import argparse

import pytest

from broker.cli.cluster import endpoint_lines
from broker.cli.configs import double_text, entry_text, heading, quotas_text
from broker.cli.features import (
    LEVELS,
    dependencies_text,
    feature_text,
    mapping_text,
    outcome_text,
    parse_release,
)
from broker.cli.json_files import Assignments, assignment_text
from broker.cli.leader_election import outcome_lines
from broker.cli.metadata_quorum import replication_text, status_text
from broker.cli.reassign_partitions import states_text, under_way_text
from broker.cli.reassignment_plan import moves_of, moving_brokers, propose, topic_throttles
from broker.cli.replica_moves import move_text
from broker.cli.topics import REPORTS, is_reported, partition_text, replication_factor, topic_text
from broker.model import TopicPartition
from common.kafka.admin.cluster import FeatureLevels, Quorum
from common.kafka.admin.configs import ConfigEntry, ConfigSource
from common.kafka.admin.log_directories import Replica, ReplicaPlace
from common.kafka.admin.quotas import Quotas
from common.kafka.admin.reassignments import ElectionType, Reassignment
from common.kafka.admin.topics import PartitionDescription, TopicDescription
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.describe_cluster import DescribeClusterBroker
from common.kafka.protocol.messages.describe_quorum import ReplicaState

ID = bytes(range(16))
P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def described(**changes: object) -> PartitionDescription:
    plain = PartitionDescription(0, 1, [1, 2], [1], [], [])
    return plain._replace(**changes)


def test_a_topic() -> None:
    topic = TopicDescription("t", ID, False, [described(), described(partition=1)])
    settings = [
        ConfigEntry("a", "1", ConfigSource.DYNAMIC_TOPIC_CONFIG, False, [], False),
        ConfigEntry("b", "x,y", ConfigSource.STATIC_BROKER_CONFIG, False, [], False),
    ]
    assert topic_text(topic, 2, settings) == (
        "Topic: t\tTopicId: AAECAwQFBgcICQoLDA0ODw\tPartitionCount: 2\tReplicationFactor: 2\t"
        "Configs: a=1,b=x,y"
    )


def test_a_partition() -> None:
    assert partition_text("t", described(elr=[2], last_known_elr=[2, 3]), None) == (
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1\tElr: 2\tLastKnownElr: 2,3"
    )
    move = Reassignment([1, 2, 3], [3], [1])
    old = described(leader_id=-1, elr=None, last_known_elr=None, replicas=[1, 2, 3])
    assert partition_text("t", old, move) == (
        "\tTopic: t\tPartition: 0\tLeader: none\tReplicas: 1,2,3\tIsr: 1\tAdding Replicas: 3\t"
        "Removing Replicas: 1\tElr: N/A\tLastKnownElr: N/A"
    )
    assert replication_factor(old, move) == 2
    assert replication_factor(described(replicas=[2, 4]), move) == 2


@pytest.mark.parametrize(
    ("partition", "reports"),
    [
        (described(isr=[1, 2]), ["at-min-isr-partitions"]),
        (described(isr=[1, 2], replicas=[1, 2, 3]), ["under-replicated", "at-min-isr"]),
        (described(isr=[1]), ["under-replicated", "under-min-isr"]),
        (described(isr=[1, 2, 3], replicas=[1, 2, 3]), []),
        # A leader that is not among the live brokers does not lead.
        (described(leader_id=9, isr=[1, 2, 9], replicas=[1, 2, 9]), ["unavailable"]),
        (described(leader_id=-1, isr=[1, 2]), ["unavailable", "under-min-isr", "at-min-isr"]),
        (described(leader_id=-1, isr=[]), ["under-replicated", "unavailable", "under-min-isr"]),
    ],
)
def test_each_report_names_the_partitions_it_is_for(
    partition: PartitionDescription, reports: list[str]
) -> None:
    for report in REPORTS:
        flags = {other.replace("-", "_"): other == report for other in REPORTS}
        found = is_reported(argparse.Namespace(**flags), partition, None, 2, {1, 2, 3})
        assert found == any(report.startswith(name) for name in reports), report


def test_a_replica_that_a_move_adds_is_not_missing() -> None:
    flags = {report.replace("-", "_"): report.startswith("under-rep") for report in REPORTS}
    partition = described(replicas=[1, 2, 3], isr=[1, 2])
    options = argparse.Namespace(**flags)
    assert not is_reported(options, partition, Reassignment([1, 2, 3], [3], []), 2, {1, 2, 3})
    assert is_reported(options, partition, None, 2, {1, 2, 3})


def test_a_setting() -> None:
    synonyms = [
        (ConfigSource.DYNAMIC_BROKER_CONFIG, "a", "1"),
        (ConfigSource.DEFAULT_CONFIG, "a", None),
    ]
    entry = ConfigEntry("a", "1", ConfigSource.DYNAMIC_BROKER_CONFIG, False, synonyms, False)
    assert entry_text(entry) == (
        "  a=1 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:a=1, DEFAULT_CONFIG:a=null}"
    )
    secret = ConfigEntry("p", None, ConfigSource.STATIC_BROKER_CONFIG, True, [], False)
    assert entry_text(secret) == "  p=null sensitive=true synonyms={}"
    assert heading("brokers", "", describe_all=False) == (
        "Default configs for brokers in the cluster are:"
    )
    assert heading("topics", "t", describe_all=True) == "All configs for topic t are:"


def test_quotas() -> None:
    quotas = Quotas({"client-id": "app", "user": None}, {"producer_byte_rate": 1024.0})
    assert quotas_text(quotas) == (
        "Quota configs for the default user-principal, client-id 'app' are "
        "producer_byte_rate=1024.0"
    )


def test_numbers_are_written_as_java_writes_them() -> None:
    written = {0: "0.0", 50: "50.0", 2048.5: "2048.5", 9999999: "9999999.0", 1e7: "1.0E7"}
    written |= {10485760: "1.048576E7", 0.001: "0.001", 0.00012: "1.2E-4", 1e300: "1.0E300"}
    assert {value: double_text(value) for value in written} == written


QUORUM = Quorum(
    leader_id=2,
    leader_epoch=5,
    high_watermark=90,
    voters=[
        ReplicaState(
            replica_id=1,
            log_end_offset=80,
            last_fetch_timestamp=900,
            last_caught_up_timestamp=600,
        ),
        ReplicaState(
            replica_id=2,
            replica_directory_id=ID,
            log_end_offset=100,
            last_fetch_timestamp=1000,
            last_caught_up_timestamp=1000,
        ),
    ],
    observers=[ReplicaState(replica_id=11, log_end_offset=99)],
    endpoints={2: ["CONTROLLER://h:1"]},
)


def test_the_state_of_the_quorum() -> None:
    assert status_text("the-id", QUORUM).split("\n") == [
        "ClusterId:              the-id",
        "LeaderId:               2",
        "LeaderEpoch:            5",
        "HighWatermark:          90",
        "MaxFollowerLag:         20",
        "MaxFollowerLagTimeMs:   400",
        'CurrentVoters:          [{"id": 1, "directoryId": null}, {"id": 2, "directoryId": '
        '"AAECAwQFBgcICQoLDA0ODw", "endpoints": ["CONTROLLER://h:1"]}]',
        'CurrentObservers:       [{"id": 11, "directoryId": null}]',
    ]


def test_the_replicas_of_the_quorum() -> None:
    lines = [line.split() for line in replication_text(QUORUM, None).split("\n")]
    assert lines[1:] == [
        ["2", "AAECAwQFBgcICQoLDA0ODw", "100", "0", "1000", "1000", "Leader"],
        ["1", "A" * 22, "80", "20", "900", "600", "Follower"],
        ["11", "A" * 22, "99", "1", "-1", "-1", "Observer"],
    ]
    rows = replication_text(QUORUM, 1500).split("\n")
    assert rows[0] == (
        "NodeId\tDirectoryId           \tLogEndOffset\tLag\tLastFetchTimestamp\t"
        "LastCaughtUpTimestamp\tStatus  \t"
    )
    assert rows[2].split("\t")[4:6] == ["600 ms ago        ", "900 ms ago           "]


def test_features() -> None:
    assert feature_text(FeatureLevels("metadata.version", 7, 30, 29), 8) == (
        "Feature: metadata.version                          SupportedMinVersion: 3.3-IV3          "
        "SupportedMaxVersion: 4.3-IV0          FinalizedVersionLevel: 4.2-IV1          Epoch: 8"
    )
    assert feature_text(FeatureLevels("share.version", 0, 1, 0), None).endswith("Epoch: -")
    refusal = KafkaError(ErrorCode.INVALID_UPDATE_VERSION, "no.")
    said = [
        outcome_text("upgrade", "a", 1, None, dry_run=True),
        outcome_text("downgrade", "a", 0, refusal, dry_run=False),
        outcome_text("disable", "a", 0, None, dry_run=False),
    ]
    assert said == ["a can be upgraded to 1.", "Could not downgrade a to 0. no.", "a was disabled."]


def test_releases_and_what_they_need() -> None:
    assert mapping_text("4.0").split("\n")[:3] == [
        "metadata.version=25 (4.0)",
        "kraft.version=1",
        "transaction.version=2",
    ]
    assert dependencies_text("eligible.leader.replicas.version", 1).split("\n") == [
        "eligible.leader.replicas.version=1 requires:",
        "    metadata.version=23 (4.0-IV1)",
    ]
    assert dependencies_text("share.version", 1) == "share.version=1 has no dependencies."
    assert parse_release("4.3-IV0") == LEVELS["4.3-IV0"] == 30
    assert parse_release("4") is None


def test_nodes() -> None:
    nodes = [
        DescribeClusterBroker(broker_id=1, host="a.b", port=9092),
        DescribeClusterBroker(broker_id=2, host="longer", port=9093, rack="r", is_fenced=True),
    ]
    assert endpoint_lines(nodes, are_controllers=False) == [
        "ID         HOST   PORT       RACK STATE      ENDPOINT_TYPE  ",
        "1          a.b    9092       null unfenced   broker         ",
        "2          longer 9093       r fenced     broker         ",
    ]
    assert "STATE" not in endpoint_lines(nodes, are_controllers=True)[0]


def test_elections() -> None:
    outcomes = {
        P1: None,
        P0: KafkaError(ErrorCode.ELECTION_NOT_NEEDED),
        TopicPartition("u", 0): KafkaError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "why"),
    }
    assert outcome_lines(ElectionType.PREFERRED, outcomes) == [
        "Successfully completed leader election (PREFERRED) for partitions t-1",
        "Valid replica already elected for partitions t-0",
        "Error completing leader election (PREFERRED) for partition: u-0: "
        "PREFERRED_LEADER_NOT_AVAILABLE: why",
    ]


def test_reassignments() -> None:
    proposal = Assignments([(P0, [2]), (P1, [3]), (TopicPartition("u", 0), [1])], {})
    under_way = {P0: Reassignment([1, 2], [2], [1])}
    assert states_text(proposal, under_way, {P1: [3], P0: [1, 2]}).split("\n") == [
        "Status of partition reassignment:",
        "Reassignment of partition t-0 is still in progress.",
        "Reassignment of partition t-1 is completed.",
        "There is no active reassignment of partition u-0, but replica set is  rather than 1.",
    ]
    assert under_way_text(under_way) == (
        "Current partition reassignments:\nt-0: replicas: 1,2. adding: 2. removing: 1."
    )
    assert under_way_text({}) == "No partition reassignments found."
    places = {Replica(1, "t", 0): ReplicaPlace("/a", None)}
    assert assignment_text({P0: [1, 2]}, places) == (
        '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2],'
        '"log_dirs":["/a","any"]}]}'
    )


def test_moves_between_directories() -> None:
    replica = Replica(1, "t", 0)
    said = [
        move_text(replica, "/b", place)
        for place in (
            None,
            ReplicaPlace(None, None),
            ReplicaPlace("/a", "/b"),
            ReplicaPlace("/a", "/c"),
            ReplicaPlace("/a", None),
            ReplicaPlace("/b", None),
        )
    ]
    assert said == [
        "Partition t-0 cannot be found in any live log directory on broker 1.",
        "Partition t-0 is not found in any live log dir on broker 1. "
        "There is likely an offline log directory on the broker.",
        "Reassignment of replica t-0-1 is still in progress.",
        "Partition t-0 on broker 1 is being moved to log dir /c instead of /b.",
        "Partition t-0 on broker 1 is not being moved from log dir /a to /b.",
        "Reassignment of replica t-0-1 completed successfully.",
    ]


def test_a_proposal_spreads_leaders_and_racks() -> None:
    current = {TopicPartition("t", number): [1, 2] for number in range(12)}
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    for start in range(4):
        proposed = propose(current, racks, start, shift=1)
        leaders = [replicas[0] for replicas in proposed.values()]
        assert {leaders.count(broker) for broker in racks} == {3}
        assert all(len({racks[one] for one in replicas}) == 2 for replicas in proposed.values())
    single = propose({P0: [4]}, {1: None}, 0, 0)
    assert single == {P0: [1]}


def test_throttles_are_for_the_replicas_that_copy() -> None:
    moves = moves_of({}, {P0: [2, 3], P1: [1, 2]}, {P0: [1, 2], P1: [1, 2]})
    assert topic_throttles(moves) == {
        "t": {
            "leader.replication.throttled.replicas": "0:1,0:2,1:1,1:2",
            "follower.replication.throttled.replicas": "0:3",
        }
    }
    assert moving_brokers(moves) == [1, 2, 3]
