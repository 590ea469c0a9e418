"""The difference of two images, for a node whose image is replaced by that of a snapshot."""

from broker.metadata.delta import MetadataDelta
from broker.metadata.image import MetadataImage
from broker.metadata.parts.topics import TopicImage


def compute_difference(old: MetadataImage, new: MetadataImage) -> MetadataDelta:
    """Return the changes for a node that has followed `old` and continues with `new`."""
    delta = MetadataDelta(
        created_topics={
            topic_id for topic_id in new.topics.by_id if topic_id not in old.topics.by_id
        },
        deleted_topics=[
            topic
            for topic_id, topic in old.topics.by_id.items()
            if topic_id not in new.topics.by_id
        ],
        deleted_ids=old.topics.by_id.keys() - new.topics.by_id.keys(),
        changed_configs={
            resource
            for resource in {*old.configs, *new.configs}
            if old.configs.settings_of(*resource) != new.configs.settings_of(*resource)
        },
        changed_brokers={
            broker_id
            for broker_id in {*old.brokers, *new.brokers}
            if old.brokers.get(broker_id) != new.brokers.get(broker_id)
        },
        quotas_changed=old.client_quotas != new.client_quotas,
        features_changed=old.features != new.features,
    )
    for topic_id, topic in new.topics.by_id.items():
        changed = _changed_partitions(old.topics.by_id.get(topic_id), topic)
        if changed:
            delta.changed_partitions[topic_id] = changed
    return delta


def _changed_partitions(old: TopicImage | None, new: TopicImage) -> set[int]:
    before = old.partitions if old is not None else {}
    return {number for number, part in new.partitions.items() if before.get(number) != part}
