"""A check that the job's input topics exist and every partition has a leader."""

from common.credentials.access import KafkaAccess
from common.kafka.admin.client import AdminClient
from common.kafka.admin.settings import AdminSettings
from common.kafka.admin.topics import NO_LEADER, list_topics
from common.kafka.errors import KafkaError
from spark_analytics.jobs.topics import INPUTS

_METADATA_MS = 2_000


class InputTopics:
    """The input topics of the job."""

    def __init__(self, kafka: KafkaAccess) -> None:
        self._settings = AdminSettings.within(_METADATA_MS, kafka.bootstrap_servers, kafka.security)

    def absent(self) -> list[str] | None:
        """Return the missing topics; None if Kafka does not answer or a partition has no leader.

        One partition without a leader is enough: the figures lack its records, however fresh those
        of the other partitions are.
        """
        try:
            with AdminClient(self._settings) as client:
                topics = {topic.name: topic for topic in list_topics(client)}
        except KafkaError:
            return None
        found = [topics[name] for name in INPUTS if name in topics]
        partitions = [one for topic in found for one in topic.partitions]
        if any(partition.leader_id == NO_LEADER for partition in partitions):
            return None
        return [name for name in INPUTS if name not in topics]
