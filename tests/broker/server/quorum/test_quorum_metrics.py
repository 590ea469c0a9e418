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
        assert numbers["kafka_server_raft_metrics_current_leader"] == 1
        assert numbers["kafka_server_raft_metrics_current_epoch"] == 1
        assert numbers["kafka_server_raft_metrics_high_watermark"] == quorum.raft.log.end_offset
        assert numbers["kafka_server_raft_metrics_log_end_offset"] == quorum.raft.log.end_offset
        last_offset = quorum.raft.log.end_offset - 1
        metadata = "kafka_server_broker_metadata_metrics_"
        assert numbers[f"{metadata}last_applied_record_offset"] == last_offset
        assert 0 <= numbers[f"{metadata}last_applied_record_lag_ms"] < 60_000
        assert numbers[f"{metadata}ignored_static_voters"] == 0
        assert numbers["kafka_server_metadata_loader_current_controller_id"] == 1
        level = 'level{feature_name="kraft.version"}'
        assert numbers[f"kafka_server_metadata_loader_finalized_{level}"] == 0
        assert numbers[f"kafka_server_node_metrics_maximum_supported_{level}"] == 1
        raft = "kafka_server_raft_metrics_"
        assert numbers[f"{raft}append_records_rate"] > 0
        assert numbers[f"{raft}fetch_records_rate"] == 0
        assert 0 <= numbers[f"{raft}commit_latency_avg"] <= numbers[f"{raft}commit_latency_max"]
        assert 0 <= numbers[f"{raft}election_latency_avg"] <= numbers[f"{raft}election_latency_max"]
        assert 0 < numbers[f"{raft}poll_idle_ratio_avg"] < 1
        assert numbers["kafka_controller_new_active_controllers_count"] == 1
        assert numbers['kafka_server_raft_metrics_current_state{state="leader"}'] == 1
        assert numbers['kafka_server_raft_metrics_current_state{state="prospective-voted"}'] == 0
        assert numbers["kafka_server_raft_metrics_current_vote"] == 1
        assert numbers["kafka_server_raft_metrics_number_of_voters"] == 1
        assert numbers["kafka_server_raft_metrics_number_of_observers"] == 0
        assert numbers["kafka_server_raft_metrics_uncommitted_voter_change"] == 0
        assert numbers["kafka_server_raft_metrics_number_unknown_voter_connections"] == 0
        assert numbers["kafka_server_raft_metrics_log_end_epoch"] == 1
        assert numbers['kafka_server_raft_metrics_current_state{state="follower"}'] == 0
        assert numbers["kafka_controller_active_controller_count"] == 1
        assert (
            numbers["kafka_controller_last_applied_record_offset"] == quorum.raft.log.end_offset - 1
        )
        assert (
            numbers["kafka_controller_last_committed_record_offset"]
            == quorum.raft.log.end_offset - 1
        )
        assert numbers["kafka_controller_global_topic_count"] == 1
        assert numbers["kafka_controller_active_broker_count"] == 0
        assert numbers["kafka_controller_controlled_shutdown_broker_count"] == 0
        assert numbers["kafka_controller_offline_partitions_count"] == 0
        assert numbers["kafka_controller_preferred_replica_imbalance_count"] == 0
        assert numbers["kafka_controller_stats_leader_elections_total"] == 0
        assert numbers["kafka_controller_stats_unclean_leader_elections_total"] == 0
        elected = "kafka_controller_stats_election_from_eligible_leader_replicas_total"
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
        assert numbers["kafka_server_raft_metrics_election_latency_seconds_count"] >= 1
        longest = numbers["kafka_server_raft_metrics_election_latency_max_seconds"]
        assert 0 <= longest <= numbers["kafka_server_raft_metrics_election_latency_seconds_sum"]
        assert numbers["kafka_controller_active_controller_count"] == int(stays.is_serving)
        assert numbers["kafka_server_raft_metrics_election_latency_max"] == longest * 1000
        assert numbers["kafka_server_raft_metrics_fetch_records_rate"] > 0
        assert numbers["kafka_controller_new_active_controllers_count"] == 2
        nodes.kill_all()

    run(scenario)
