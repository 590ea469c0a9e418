"""An image as records: their replay on a new image gives an equal image.

The order is that of Kafka's image writer: features first, because they decide the versions of the
other records, then brokers, controllers, topics, settings, quotas, producer ids, access
rules, SCRAM credentials and delegation tokens.
"""

from collections.abc import Iterator
from itertools import chain, starmap

from broker.metadata.features import METADATA_VERSION
from broker.metadata.image import MetadataImage
from broker.metadata.parts.acls import acl_record
from broker.metadata.parts.brokers import BrokerImage, endpoint_records, feature_records
from broker.metadata.parts.delegation_tokens import token_record
from broker.metadata.parts.scram import scram_record
from broker.metadata.parts.topics import PartitionImage
from common.kafka.protocol.message import Message
from common.kafka.protocol.records.metadata import (
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    ProducerIdsRecord,
    QuotaEntity,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
)


def snapshot_records(image: MetadataImage) -> list[Message]:
    """Return the records of the whole image."""
    return list(each_snapshot_record(image))


def each_snapshot_record(image: MetadataImage) -> Iterator[Message]:
    """Return an iterator over the records of the image's present state.

    The small parts are encoded at the call. For the topics, the iterator keeps the partition
    images, which are replaced and never changed.
    """
    before = _features(image)
    before += [_broker(image.brokers[broker_id]) for broker_id in sorted(image.brokers)]
    before += _controllers(image)
    topics = [
        (topic.name, topic.topic_id, tuple(topic.partitions.values()))
        for topic in image.topics.by_id.values()
    ]
    after = _configs(image) + _quotas(image) + _producer_ids(image) + _security(image)
    return chain(before, chain.from_iterable(starmap(_topic, topics)), after)


def _features(image: MetadataImage) -> list[Message]:
    # metadata.version comes first: it decides the versions of all other records.
    names = sorted(image.features, key=lambda name: (name != METADATA_VERSION, name))
    return [FeatureLevelRecord(name=name, feature_level=image.features[name]) for name in names]


def _broker(broker: BrokerImage) -> Message:
    cordoned = broker.cordoned_log_dirs
    return RegisterBrokerRecord(
        broker_id=broker.broker_id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=endpoint_records(broker),
        features=feature_records(broker),
        rack=broker.rack,
        fenced=broker.is_fenced,
        in_controlled_shutdown=broker.is_in_controlled_shutdown,
        log_dirs=list(broker.log_dirs),
        cordoned_log_dirs=None if cordoned is None else list(cordoned),
    )


def _controllers(image: MetadataImage) -> list[Message]:
    return [
        RegisterControllerRecord(
            controller_id=controller.controller_id,
            incarnation_id=controller.incarnation_id,
            end_points=endpoint_records(controller),
            features=feature_records(controller),
        )
        for _, controller in sorted(image.controllers.items())
    ]


def _topic(name: str, topic_id: bytes, partitions: tuple[PartitionImage, ...]) -> Iterator[Message]:
    yield TopicRecord(name=name, topic_id=topic_id)
    for partition in partitions:
        yield partition_record(topic_id, partition)


def partition_record(topic_id: bytes, partition: PartitionImage) -> PartitionRecord:
    """Return the record with the whole state of a partition."""
    return PartitionRecord(
        partition_id=partition.partition,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing_replicas),
        adding_replicas=list(partition.adding_replicas),
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=list(partition.directories),
        eligible_leader_replicas=list(partition.elr) or None,
        last_known_elr=list(partition.last_known_elr) or None,
    )


def _configs(image: MetadataImage) -> list[Message]:
    return [
        ConfigRecord(resource_type=resource[0], resource_name=resource[1], name=name, value=value)
        for resource in sorted(image.configs)
        for name, value in sorted(image.configs.settings_of(*resource).items())
    ]


def _quotas(image: MetadataImage) -> list[Message]:
    return [
        ClientQuotaRecord(
            entity=[QuotaEntity(entity_type=kind, entity_name=name) for kind, name in entity],
            key=key,
            value=value,
        )
        for entity, quotas in image.client_quotas.items()
        for key, value in sorted(quotas.items())
    ]


def _security(image: MetadataImage) -> list[Message]:
    records: list[Message] = [acl_record(acl_id, acl) for acl_id, acl in sorted(image.acls.items())]
    for (user, mechanism), credential in sorted(image.scram.items()):
        records.append(scram_record(user, mechanism, credential))
    records += [token_record(token) for _, token in sorted(image.delegation_tokens.items())]
    return records


def _producer_ids(image: MetadataImage) -> list[Message]:
    ids = image.producer_ids
    if not ids.next_producer_id:
        return []
    return [
        ProducerIdsRecord(
            broker_id=ids.broker_id,
            broker_epoch=ids.broker_epoch,
            next_producer_id=ids.next_producer_id,
        )
    ]
