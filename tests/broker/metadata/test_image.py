"""The image: what its delta tells, and that its snapshot gives it again."""

import tracemalloc

from broker.metadata.delta import MetadataDelta
from broker.metadata.image import MetadataImage
from broker.metadata.snapshot import snapshot_records
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    Feature,
    Listener,
)
from common.kafka.protocol.records.metadata import (
    AccessControlEntryRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    ProducerIdsRecord,
    QuotaEntity,
    RemoveAccessControlEntryRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UserScramCredentialRecord,
    decode_metadata_record,
    encode_metadata_record,
)
from tests.lib.controlled_cluster import ControlledCluster


def test_what_is_prepared_changes_nothing_before_the_rest_is_done() -> None:
    cluster, image = rich_cluster(), MetadataImage()
    records = snapshot_records(cluster.image)
    replays = [image.prepare(record) for record in records]
    assert image == MetadataImage()
    assert image.take_delta().is_empty
    for replay in replays:
        replay()
    assert image == cluster.image


def rich_cluster() -> ControlledCluster:
    """Return a cluster that has something of everything."""
    cluster = ControlledCluster(1, 2, 3)
    cluster.register(4, rack="b")
    for name in ("orders", "gone", "payments"):
        cluster.create(name, [1, 2, 3], [2, 3, 1])
    topics = cluster.image.topics.by_name
    orders = topics["orders"].topic_id
    user = [QuotaEntity(entity_type="user", entity_name=None)]
    records: list[Message] = [
        ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="5"),
        ConfigRecord(resource_type=2, resource_name="gone", name="retention.ms", value="5"),
        ConfigRecord(resource_type=4, resource_name="", name="a", value="5"),
        ConfigRecord(resource_type=4, resource_name="1", name="a", value="5"),
        ConfigRecord(resource_type=4, resource_name="1", name="a", value=None),
        RemoveTopicRecord(topic_id=topics["gone"].topic_id),
        ClientQuotaRecord(entity=user, key="producer_byte_rate", value=7.5),
        ProducerIdsRecord(broker_id=1, broker_epoch=2, next_producer_id=3000),
        rule(b"1" * 16, "User:alice"),
        rule(b"2" * 16, "User:bob"),
        RemoveAccessControlEntryRecord(id=b"2" * 16),
        credential("alice"),
        credential("bob"),
        RemoveUserScramCredentialRecord(name="bob", mechanism=1),
        PartitionChangeRecord(
            topic_id=orders,
            partition_id=1,
            isr=[],
            leader=-1,
            eligible_leader_replicas=[1, 2],
            last_known_elr=[3],
            adding_replicas=[4],
            replicas=[2, 3, 1, 4],
            directories=[b"directory %06d" % broker_id for broker_id in (2, 3, 1, 4)],
            leader_recovery_state=1,
        ),
    ]
    cluster.commit(records)
    cluster.heartbeat(1, cordoned_log_dirs=[b"directory 000001"])
    cluster.ask(
        ControllerRegistrationRequest(
            controller_id=3,
            incarnation_id=b"c" * 16,
            listeners=[Listener(name="CONTROLLER", host="h", port=9093)],
            features=[Feature(name="f", min_supported_version=0, max_supported_version=2)],
        )
    )
    cluster.lose(2)
    return cluster


def rule(acl_id: bytes, principal: str) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=acl_id,
        resource_type=2,
        resource_name="orders",
        pattern_type=3,
        principal=principal,
        host="*",
        operation=3,
        permission_type=3,
    )


def credential(user: str, iterations: int = 4096) -> UserScramCredentialRecord:
    return UserScramCredentialRecord(
        name=user,
        mechanism=1,
        salt=b"salt",
        stored_key=b"stored",
        server_key=b"server",
        iterations=iterations,
    )


def through_bytes(records: list[Message]) -> MetadataImage:
    image = MetadataImage()
    for record in records:
        image.replay(decode_metadata_record(encode_metadata_record(record)))
    return image


def test_a_snapshot_and_the_whole_log_give_an_equal_image() -> None:
    cluster = rich_cluster()
    assert cluster.replayed() == cluster.image
    records = snapshot_records(cluster.image)
    assert through_bytes(records) == cluster.image
    assert snapshot_records(through_bytes(records)) == records


def test_images_differ_when_anything_differs() -> None:
    cluster = rich_cluster()
    orders = cluster.image.topics.by_name["orders"].topic_id
    for record in (
        TopicRecord(name="new", topic_id=b"n" * 16),
        ConfigRecord(resource_type=4, resource_name="", name="a", value="6"),
        PartitionChangeRecord(topic_id=orders, partition_id=0, isr=[1]),
        FenceBrokerRecord(id=3),
        ProducerIdsRecord(next_producer_id=4000),
        rule(b"3" * 16, "User:bob"),
        RemoveAccessControlEntryRecord(id=b"1" * 16),
        credential("alice", iterations=5000),
        ClientQuotaRecord(
            entity=[QuotaEntity(entity_type="user", entity_name=None)],
            key="producer_byte_rate",
            remove=True,
        ),
    ):
        other = cluster.replayed()
        assert other == cluster.image
        other.replay(record)
        assert other != cluster.image


def test_the_first_record_of_a_snapshot_is_the_level_of_the_metadata() -> None:
    first = snapshot_records(rich_cluster().image)[0]
    assert (first.name, first.feature_level) == ("metadata.version", 30)  # type: ignore[attr-defined]


def test_an_empty_image_has_no_snapshot_records() -> None:
    assert snapshot_records(MetadataImage()) == []


def test_a_delta_tells_what_was_touched_since_the_last() -> None:
    cluster = ControlledCluster(1, 2)
    cluster.take_delta()
    assert cluster.take_delta().is_empty
    orders = cluster.create("orders", [1], [2]).topic_id
    delta = cluster.take_delta()
    assert (delta.created_topics, delta.changed_partitions) == ({orders}, {orders: {0, 1}})
    assert (delta.deleted_topics, delta.changed_brokers, delta.changed_configs) == (
        [],
        set(),
        set(),
    )
    cluster.lose(2)
    delta = cluster.take_delta()
    assert (delta.created_topics, delta.changed_partitions) == (set(), {orders: {1}})
    assert delta.changed_brokers == {2}
    assert cluster.take_delta().is_empty


def test_a_delta_tells_the_settings_that_went_with_their_topic() -> None:
    cluster = ControlledCluster(1)
    orders = cluster.create("orders", [1]).topic_id
    cluster.commit([ConfigRecord(resource_type=2, resource_name="orders", name="a", value="1")])
    cluster.take_delta()
    cluster.commit([RemoveTopicRecord(topic_id=orders)])
    delta = cluster.take_delta()
    assert [image.name for image in delta.deleted_topics] == ["orders"]
    assert delta.deleted_topics[0].partitions[0].leader == 1
    assert (delta.changed_configs, delta.changed_partitions) == ({(2, "orders")}, {})


def test_a_topic_that_came_and_went_is_told_of_by_its_id_alone() -> None:
    cluster = ControlledCluster(1)
    cluster.take_delta()
    topic_id = cluster.create("orders", [1]).topic_id
    cluster.commit([RemoveTopicRecord(topic_id=topic_id)])
    assert cluster.take_delta() == MetadataDelta(deleted_ids={topic_id})


def test_a_topic_that_went_and_came_again_is_told_of_twice() -> None:
    cluster = ControlledCluster(1)
    old = cluster.create("orders", [1]).topic_id
    cluster.take_delta()
    cluster.commit([RemoveTopicRecord(topic_id=old)])
    new = cluster.create("orders", [1]).topic_id
    delta = cluster.take_delta()
    assert [image.topic_id for image in delta.deleted_topics] == [old]
    assert (delta.created_topics, delta.changed_partitions) == ({new}, {new: {0}})


def test_a_delta_tells_quotas_features_and_brokers_that_are_gone() -> None:
    cluster = rich_cluster()
    delta = cluster.take_delta()
    assert (delta.quotas_changed, delta.features_changed) == (True, True)
    cluster.commit([UnfenceBrokerRecord(id=2)])
    assert cluster.take_delta().changed_brokers == {2}
    cluster.commit([ClearElrRecord(topic_name="orders")])
    orders = cluster.image.topics.by_name["orders"]
    assert cluster.take_delta().changed_partitions == {orders.topic_id: {0, 1}}
    assert orders.partitions[1].elr == orders.partitions[1].last_known_elr == ()


def test_records_that_only_frame_others_change_nothing() -> None:
    cluster = ControlledCluster(1)
    before = cluster.replayed()
    cluster.take_delta()
    cluster.commit([NoOpRecord()])
    assert cluster.image == before
    assert cluster.take_delta().is_empty


def test_a_thousand_partitions_take_less_than_half_a_megabyte() -> None:
    cluster = ControlledCluster(1, 2, 3)
    for number in range(10):
        cluster.create(f"t{number}", num_partitions=100, replication_factor=3)
    tracemalloc.start()
    image = cluster.replayed()
    image.take_delta()
    size_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert image == cluster.image
    assert size_bytes < 500_000
