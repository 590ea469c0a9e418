"""The quorum's numbers in Prometheus' text format."""

from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest

from broker.server.clock import SystemClock
from broker.server.quorum.quorum import Quorum
from broker.server.quorum.quorum_metrics import QuorumCollector
from tests.lib.quorum_nodes import Nodes, create_topic, open_quorum, run


def numbers_of(quorum: Quorum) -> dict[str, float]:
    registry = CollectorRegistry()
    clock = SystemClock()
    registry.register(QuorumCollector(quorum, clock.now_ms, clock.timestamp_ms))
    lines = generate_latest(registry).decode().splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


def test_a_node_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        quorum = open_quorum(tmp_path, {})
        quorum.start()
        await create_topic(quorum, "a")
        numbers = numbers_of(quorum)
        controller = "kafka_controller_kafkacontroller_"
        assert numbers["kafka_server_raftmetrics_current_leader"] == 1
        assert numbers["kafka_server_raftmetrics_current_epoch"] == 1
        assert numbers["kafka_server_raftmetrics_high_watermark"] == quorum.raft.log.end_offset
        assert numbers["kafka_server_raftmetrics_log_end_offset"] == quorum.raft.log.end_offset
        last_offset = quorum.raft.log.end_offset - 1
        metadata = "kafka_server_brokermetadatametrics_"
        assert numbers[f"{metadata}last_applied_record_offset"] == last_offset
        assert 0 <= numbers[f"{metadata}last_applied_record_lag_ms"] < 60_000
        assert numbers[f"{metadata}ignored_static_voters"] == 0
        assert numbers["kafka_server_metadataloader_currentcontrollerid"] == 1
        finalized = 'kafka_server_metadataloader_finalizedlevel{featureName="kraft.version"}'
        assert numbers[finalized] == 0
        supported = 'maximum_supported_level{feature_name="kraft.version"}'
        assert numbers[f"kafka_server_node_metrics_{supported}"] == 1
        raft = "kafka_server_raftmetrics_"
        assert numbers[f"{raft}append_records_rate"] > 0
        assert numbers[f"{raft}fetch_records_rate"] == 0
        assert 0 <= numbers[f"{raft}commit_latency_avg"] <= numbers[f"{raft}commit_latency_max"]
        assert 0 <= numbers[f"{raft}election_latency_avg"] <= numbers[f"{raft}election_latency_max"]
        assert 0 < numbers[f"{raft}poll_idle_ratio_avg"] < 1
        assert numbers[f"{controller}newactivecontrollerscount"] == 1
        assert numbers['kafka_server_raftmetrics_current_state{current_state="leader"}'] == 1
        assert numbers["kafka_server_raftmetrics_current_vote"] == 1
        assert numbers["kafka_server_raftmetrics_number_of_voters"] == 1
        assert numbers["kafka_server_raftmetrics_number_of_observers"] == 0
        assert numbers["kafka_server_raftmetrics_uncommitted_voter_change"] == 0
        assert numbers["kafka_server_raftmetrics_number_unknown_voter_connections"] == 0
        assert numbers["kafka_server_raftmetrics_log_end_epoch"] == 1
        assert sum("raftmetrics_current_state" in name for name in numbers) == 1
        assert numbers[f"{controller}activecontrollercount"] == 1
        assert numbers[f"{controller}lastappliedrecordoffset"] == quorum.raft.log.end_offset - 1
        assert numbers[f"{controller}lastcommittedrecordoffset"] == quorum.raft.log.end_offset - 1
        assert numbers[f"{controller}globaltopiccount"] == 1
        assert numbers[f"{controller}activebrokercount"] == 0
        assert numbers[f"{controller}controlledshutdownbrokercount"] == 0
        assert numbers[f"{controller}offlinepartitionscount"] == 0
        assert numbers[f"{controller}preferredreplicaimbalancecount"] == 0
        assert numbers["kafka_controller_controllerstats_leaderelections_total"] == 0
        assert numbers["kafka_controller_controllerstats_uncleanleaderelections_total"] == 0
        elected = "kafka_controller_controllerstats_electionfromeligibleleaderreplicas_total"
        assert numbers[elected] == 0
        quorum.begin_stop()

    run(scenario)


def test_an_election_has_a_latency(tmp_path: Path) -> None:
    async def scenario() -> None:
        nodes = Nodes(tmp_path, 3)
        nodes.start_all()
        leader = await nodes.find_leader()
        stays = nodes.follower()
        nodes.kill(leader.node_id)
        await nodes.find_leader()
        numbers = numbers_of(stays)
        controller = "kafka_controller_kafkacontroller_"
        mean = numbers["kafka_server_raftmetrics_election_latency_avg"]
        assert 0 <= mean <= numbers["kafka_server_raftmetrics_election_latency_max"]
        channel = "kafka_server_raftchannelmetrics_"
        assert 0 < numbers[f"{channel}response_total"] <= numbers[f"{channel}request_total"]
        assert numbers[f"{channel}outgoing_byte_total"] > 0
        assert numbers[f"{channel}incoming_byte_total"] > 0
        assert numbers[f"{controller}activecontrollercount"] == int(stays.is_serving)
        assert numbers["kafka_server_raftmetrics_fetch_records_rate"] > 0
        assert numbers[f"{controller}newactivecontrollerscount"] == 2
        nodes.kill_all()

    run(scenario)
