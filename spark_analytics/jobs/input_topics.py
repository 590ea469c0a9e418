"""Whether the topics the job reads can be read: there, and every partition with a leader."""

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from common.kafka.metadata_age import ADMIN_SETTINGS
from spark_analytics.jobs.topics import INPUTS

_METADATA_SECONDS = 2.0


class InputTopics:
    """Asks Kafka about them."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._admin = AdminClient(
            {**ADMIN_SETTINGS, "bootstrap.servers": bootstrap_servers, "log_level": 2}
        )

    def absent(self) -> list[str] | None:
        """Return those that are not there; None while Kafka does not answer for all the others.

        A partition without a leader counts: what is shown lacks its records, however fresh those of
        the others are.
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
