"""A check that the job's input topics exist and every partition has a leader."""

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from common.credentials.access import KafkaAccess
from common.kafka.metadata_age import ADMIN_SETTINGS
from spark_analytics.jobs.topics import INPUTS

_METADATA_SECONDS = 2.0


class InputTopics:
    """The input topics of the job."""

    def __init__(self, kafka: KafkaAccess) -> None:
        self._admin = AdminClient({**ADMIN_SETTINGS, **kafka.librdkafka(), "log_level": 2})

    def absent(self) -> list[str] | None:
        """Return the missing topics; None if Kafka does not answer or a partition has no leader.

        One partition without a leader is enough: the figures lack its records, however fresh those
        of the other partitions are.
        """
        try:
            topics = self._admin.list_topics(timeout=_METADATA_SECONDS).topics
        except KafkaException:
            return None
        found = [topics[name] for name in INPUTS if name in topics]
        partitions = [one for topic in found for one in topic.partitions.values()]
        if any(partition.leader < 0 for partition in partitions):
            return None
        return [name for name in INPUTS if name not in topics]
