"""Whether the topics of the job can be read, asked of a real cluster."""

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from common.credentials.access import KafkaAccess
from millstream.testing import LocalCluster
from spark_analytics.jobs.input_topics import InputTopics
from spark_analytics.jobs.topics import INPUTS, ORDERS
from tests.lib.waiting import until

pytestmark = [pytest.mark.interop]


def test_a_topic_can_be_read_while_every_partition_has_a_leader() -> None:
    with LocalCluster(brokers=2, controllers=3) as cluster:
        inputs = InputTopics(KafkaAccess(cluster.bootstrap_servers))
        assert inputs.absent() == list(INPUTS)

        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        made = admin.create_topics([NewTopic(ORDERS, num_partitions=4, replication_factor=1)])
        made[ORDERS].result()
        others = [name for name in INPUTS if name != ORDERS]
        until(lambda: inputs.absent() == others)

        cluster.kill(2)
        until(lambda: inputs.absent() is None)
        cluster.start(2)
        until(lambda: inputs.absent() == others)
