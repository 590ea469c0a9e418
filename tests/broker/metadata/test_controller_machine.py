"""Random administration against what must hold after every step, whatever was decided."""

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from broker.metadata.controller import NEVER_MS
from broker.metadata.delta import MetadataDelta
from broker.metadata.image import MetadataImage, PartitionImage
from broker.metadata.parts.topics import RECOVERING
from broker.metadata.snapshot import snapshot_records
from broker.metadata.topic_names import collision_key
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from common.kafka.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from common.kafka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from common.kafka.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    DirectoryData,
)
from common.kafka.protocol.messages.assign_replicas_to_dirs import (
    PartitionData as PartitionAssignment,
)
from common.kafka.protocol.messages.assign_replicas_to_dirs import TopicData as TopicAssignment
from common.kafka.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from common.kafka.protocol.messages.delete_topics import DeleteTopicsRequest
from common.kafka.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from common.kafka.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from common.kafka.protocol.messages.unregister_broker import UnregisterBrokerRequest
from common.kafka.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.lib.controlled_cluster import ControlledCluster

BROKERS = st.integers(1, 4)
TOPICS = st.sampled_from(["a.b", "a_b", "c"])
PARTITIONS = st.integers(0, 2)
REPLICAS = st.lists(BROKERS, min_size=1, max_size=3, unique=True)
SETTINGS = st.sampled_from(
    [
        ("min.insync.replicas", "1"),
        ("min.insync.replicas", "2"),
        ("unclean.leader.election.enable", "true"),
        ("unclean.leader.election.enable", "false"),
    ]
)
ELR = "eligible.leader.replicas.version"


class ClusterMachine(RuleBasedStateMachine):
    """One controller, four brokers that may be there, three names of which two collide."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = ControlledCluster()
        self.incarnations = 1
        self.epochs: dict[int, tuple[int, bytes]] = {}  # broker epoch -> whose it is
        self.asked_isr: set[int] = set()
        self.before = self.copy()
        self.cluster.take_delta()

    def copy(self) -> MetadataImage:
        image = MetadataImage()
        for record in snapshot_records(self.cluster.image):
            image.replay(record)
        image.take_delta()
        return image

    # --- brokers ---

    @rule(broker=BROKERS, is_new=st.booleans(), is_clean=st.booleans())
    def register(self, broker: int, is_new: bool, is_clean: bool) -> None:
        self.incarnations += is_new
        existing = self.cluster.image.brokers.get(broker)
        previous = existing.epoch if is_clean and existing is not None else -1
        answer = self.cluster.register(broker, self.incarnations, previous_broker_epoch=previous)
        assert answer.error_code in {0, ErrorCode.DUPLICATE_BROKER_REGISTRATION}

    @rule(broker=BROKERS, wants=st.tuples(st.booleans(), st.booleans()), lag=st.integers(0, 5))
    def heartbeat(self, broker: int, wants: tuple[bool, bool], lag: int) -> None:
        want_fence, want_shut_down = wants
        answer = self.cluster.heartbeat(
            broker,
            want_fence=want_fence,
            want_shut_down=want_shut_down,
            current_metadata_offset=len(self.cluster.log) - 1 - lag,
        )
        if answer.error_code == 0:
            assert answer.is_fenced == self.cluster.broker(broker).is_fenced
            assert not answer.should_shut_down or answer.is_fenced

    @rule(broker=BROKERS)
    def serve(self, broker: int) -> None:
        self.cluster.heartbeat(broker)

    @rule(broker=BROKERS)
    def lose(self, broker: int) -> None:
        self.cluster.lose(broker)

    @rule(after_ms=st.integers(0, 10_000))
    def let_time_pass(self, after_ms: int) -> None:
        self.cluster.tick(after_ms)

    @rule()
    def elect_controller(self) -> None:
        self.cluster.elect_controller()

    @rule(broker=BROKERS, chance=st.integers(0, 3))
    def unregister(self, broker: int, chance: int) -> None:
        if chance == 0:
            self.cluster.ask(UnregisterBrokerRequest(broker_id=broker))

    @rule()
    def serve_all(self) -> None:
        """Let every broker that is not alive come back, cleanly or not."""
        for broker in range(1, 5):
            existing = self.cluster.image.brokers.get(broker)
            if existing is None:
                self.cluster.register(broker, self.incarnations)
            elif existing.is_in_controlled_shutdown:
                self.register(broker, is_new=True, is_clean=True)
            self.cluster.heartbeat(broker)

    @rule(broker=BROKERS)
    def fail_directory(self, broker: int) -> None:
        self.cluster.heartbeat(broker, offline_log_dirs=[b"directory %06d" % broker])

    # --- topics ---

    @rule(name=TOPICS, replicas=st.lists(REPLICAS, min_size=1, max_size=3))
    def create_with_replicas(self, name: str, replicas: list[list[int]]) -> None:
        self.cluster.create(name, *replicas)

    @rule(name=TOPICS, partitions=st.integers(1, 3), factor=st.integers(1, 3))
    def create(self, name: str, partitions: int, factor: int) -> None:
        self.cluster.create(name, num_partitions=partitions, replication_factor=factor)

    @rule(name=TOPICS, chance=st.integers(0, 3))
    def delete(self, name: str, chance: int) -> None:
        if chance == 0:
            self.cluster.ask(DeleteTopicsRequest(topic_names=[name]), 5)

    @rule(name=TOPICS, count=st.integers(1, 4))
    def grow(self, name: str, count: int) -> None:
        topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
        self.cluster.ask(CreatePartitionsRequest(topics=[topic]))

    @rule(name=TOPICS, setting=SETTINGS, operation=st.integers(0, 1))
    def configure(self, name: str, setting: tuple[str, str], operation: int) -> None:
        config = AlterableConfig(name=setting[0], value=setting[1], config_operation=operation)
        resource = AlterConfigsResource(resource_type=2, resource_name=name, configs=[config])
        self.cluster.ask(IncrementalAlterConfigsRequest(resources=[resource]))
        self.cluster.tick()

    @initialize(is_elr_on=st.booleans())
    def begin(self, is_elr_on: bool) -> None:
        """Start with something to lose."""
        for broker in (1, 2, 3, 4):
            self.cluster.start(broker)
        self.change_feature(int(is_elr_on), 0)
        self.create_with_replicas("c", [[1, 2, 3], [2, 3, 1], [4, 1, 2]])
        self.configure("c", ("min.insync.replicas", "2"), 0)

    @rule(level=st.integers(0, 1), chance=st.integers(0, 7))
    def change_feature(self, level: int, chance: int) -> None:
        if chance != 0:
            return
        key = FeatureUpdateKey(feature=ELR, max_version_level=level, upgrade_type=2 - level)
        self.cluster.ask(UpdateFeaturesRequest(feature_updates=[key]))

    @rule(broker=BROKERS)
    def allocate_producer_ids(self, broker: int) -> None:
        found = self.cluster.image.brokers.get(broker)
        first = self.cluster.image.producer_ids.next_producer_id
        if found is not None:
            request = AllocateProducerIdsRequest(broker_id=broker, broker_epoch=found.epoch)
            assert self.cluster.ask(request).producer_id_start == first

    # --- partitions ---

    @rule(name=TOPICS, index=PARTITIONS, kind=st.integers(0, 1))
    def elect(self, name: str, index: int, kind: int) -> None:
        wanted = [TopicPartitions(topic=name, partitions=[index])]
        self.cluster.ask(ElectLeadersRequest(election_type=kind, topic_partitions=wanted))

    @rule(name=TOPICS, index=PARTITIONS, replicas=st.none() | REPLICAS)
    def move(self, name: str, index: int, replicas: list[int] | None) -> None:
        wanted = ReassignablePartition(partition_index=index, replicas=replicas)
        topic = ReassignableTopic(name=name, partitions=[wanted])
        self.cluster.ask(AlterPartitionReassignmentsRequest(topics=[topic]), 1)

    @rule(name=st.sampled_from(["c", "a.b"]), index=PARTITIONS)
    def catch_up(self, name: str, index: int) -> None:
        """Let the leader take everyone in who is alive."""
        topic = self.cluster.image.topics.by_name.get(name)
        if topic is not None and index in topic.partitions:
            brokers = self.cluster.image.brokers
            places = {
                place
                for place, replica in enumerate(topic.partitions[index].replicas)
                if replica in brokers and brokers[replica].is_active
            }
            self.alter_isr(name, index, places)

    @rule(name=TOPICS, index=PARTITIONS, chosen=st.sets(st.integers(0, 5)))
    def alter_isr(self, name: str, index: int, chosen: set[int]) -> None:
        topic = self.cluster.image.topics.by_name.get(name)
        partition = topic and topic.partitions.get(index)
        if topic is None or partition is None or partition.leader == -1:
            return
        isr = [
            replica
            for place, replica in enumerate(partition.replicas)
            if place in chosen or replica == partition.leader
        ]
        data = PartitionData(
            partition_index=index,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            new_isr_with_epochs=[BrokerState(broker_id=replica) for replica in isr],
        )
        self.asked_isr = set(isr)
        leader = self.cluster.broker(partition.leader)
        answer = self.cluster.ask(
            AlterPartitionRequest(
                broker_id=leader.broker_id,
                broker_epoch=leader.epoch,
                topics=[TopicData(topic_id=topic.topic_id, partitions=[data])],
            )
        )
        assert answer.error_code == 0
        result = answer.topics[0].partitions[0]
        if result.error_code == 0:
            after = topic.partitions[index]
            assert tuple(result.isr) == after.isr
            assert result.partition_epoch == after.partition_epoch

    @rule(name=TOPICS, index=PARTITIONS, broker=BROKERS, is_lost=st.booleans())
    def assign_directory(self, name: str, index: int, broker: int, is_lost: bool) -> None:
        topic = self.cluster.image.topics.by_name.get(name)
        found = self.cluster.image.brokers.get(broker)
        if topic is None or found is None:
            return
        wanted = TopicAssignment(
            topic_id=topic.topic_id, partitions=[PartitionAssignment(partition_index=index)]
        )
        directory = b"failed".ljust(16) if is_lost else found.log_dirs[0]
        request = AssignReplicasToDirsRequest(
            broker_id=broker,
            broker_epoch=found.epoch,
            directories=[DirectoryData(id=directory, topics=[wanted])],
        )
        assert self.cluster.ask(request).error_code == 0

    # --- what must hold after every step ---

    @invariant()
    def every_step_keeps_the_rules(self) -> None:
        image = self.cluster.image
        delta = self.cluster.take_delta()
        self.check_topics(image)
        for topic in image.topics.by_id.values():
            old_topic = self.before.topics.by_id.get(topic.topic_id)
            for index, partition in topic.partitions.items():
                self.check_partition(partition)
                if old_topic is not None and index in old_topic.partitions:
                    is_unclean = self.cluster.image.configs.settings_of(2, topic.name).get(
                        "unclean.leader.election.enable"
                    )
                    self.check_step(old_topic.partitions[index], partition, is_unclean == "true")
        self.check_brokers(image)
        check_delta(self.before, image, delta)
        self.before = self.copy()
        assert self.before == image == self.cluster.replayed()
        self.asked_isr = set()

    def check_topics(self, image: MetadataImage) -> None:
        topics = image.topics
        assert {topic.name: topic for topic in topics.by_id.values()} == topics.by_name
        assert len({collision_key(name) for name in topics.by_name}) == len(topics.by_name)
        for topic in topics.by_id.values():
            assert sorted(topic.partitions) == list(range(len(topic.partitions)))

    def check_partition(self, partition: PartitionImage) -> None:
        replicas, isr, elr = set(partition.replicas), set(partition.isr), set(partition.elr)
        assert len(partition.replicas) == len(replicas) > 0, partition
        assert len(partition.isr) == len(isr), partition
        assert isr <= replicas, partition
        assert elr <= replicas, partition
        assert not elr & isr, partition
        assert {*partition.adding_replicas, *partition.removing_replicas} <= replicas, partition
        assert not {*partition.adding_replicas} & {*partition.removing_replicas}, partition
        assert len(partition.directories) == len(partition.replicas), partition
        is_elr_enabled = ELR in self.cluster.image.features
        assert isr or is_elr_enabled, partition
        assert not elr or is_elr_enabled, partition
        if partition.leader != -1:
            assert partition.leader in isr, partition
            leader = self.cluster.image.brokers.get(partition.leader)
            assert leader is not None, partition
            assert not leader.is_fenced, partition

    def check_step(self, old: PartitionImage, new: PartitionImage, is_unclean: bool) -> None:
        assert new.partition_epoch >= old.partition_epoch
        assert new.leader_epoch >= old.leader_epoch
        if new.leader != old.leader:
            assert new.leader_epoch > old.leader_epoch, (old, new)
            may_lead = {*old.isr, *old.elr, *self.asked_isr, -1}
            is_recovering = new.leader_recovery_state == RECOVERING
            assert new.leader in may_lead or is_recovering or is_unclean, (old, new)
        was_cleared = (new.elr, new.last_known_elr) == ((), ())
        if new != old and not was_cleared:
            assert new.partition_epoch > old.partition_epoch, (old, new)

    def check_brokers(self, image: MetadataImage) -> None:
        for broker in image.brokers.values():
            owner = (broker.broker_id, broker.incarnation_id)
            assert self.epochs.setdefault(broker.epoch, owner) == owner
        some_alive = any(not broker.is_fenced for broker in image.brokers.values())
        deadline = self.cluster.controller.next_deadline_ms()
        assert (deadline != NEVER_MS) == (some_alive or len(image.brokers) > 1)
        assert deadline > self.cluster.now_ms


def check_delta(before: MetadataImage, now: MetadataImage, delta: MetadataDelta) -> None:
    """Check that a delta names all that differs."""
    old, new = before.topics.by_id, now.topics.by_id
    assert delta.created_topics == new.keys() - old.keys()
    assert {image.topic_id for image in delta.deleted_topics} == old.keys() - new.keys()
    assert delta.changed_partitions.keys() <= new.keys()
    for topic_id, topic in new.items():
        known = old[topic_id].partitions if topic_id in old else {}
        differing = {
            index for index, partition in topic.partitions.items() if known.get(index) != partition
        }
        assert differing <= delta.changed_partitions.get(topic_id, set())
    assert differing_keys(before.brokers, now.brokers) <= delta.changed_brokers
    settings_before = {
        resource: before.configs.settings_of(*resource) for resource in before.configs
    }
    settings_now = {resource: now.configs.settings_of(*resource) for resource in now.configs}
    assert differing_keys(settings_before, settings_now) <= delta.changed_configs
    assert delta.features_changed or before.features == now.features


def differing_keys(before: dict[Any, Any], now: dict[Any, Any]) -> set[Any]:
    return {key for key in before.keys() | now.keys() if before.get(key) != now.get(key)}


def run(max_examples: int) -> None:
    run_state_machine_as_test(
        ClusterMachine,
        settings=settings(
            max_examples=max_examples,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_random_administration_keeps_every_rule() -> None:
    run(max_examples=20)


@pytest.mark.slow
def test_much_random_administration_keeps_every_rule() -> None:
    run(max_examples=80)
