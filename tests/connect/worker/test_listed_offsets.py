"""The offset of a partition whose leader is lost while it is asked."""

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.cimpl import NewTopic

from connect.worker.topic_log import listed_offset
from millstream.testing import LocalBroker

pytestmark = pytest.mark.slow

AT = TopicPartition("t", 0)


def test_a_leader_lost_while_it_is_asked_is_an_error() -> None:
    with LocalBroker() as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": "0"})
        admin.create_topics([NewTopic("t", 1, 1)])["t"].result(30)
        asked = {AT: OffsetSpec.latest()}  # type: ignore[no-untyped-call]
        assert listed_offset(admin.list_offsets(asked, request_timeout=30)[AT], 30) == 0
        broker.pause()
        lost = admin.list_offsets(asked, request_timeout=5)[AT]
        broker.kill()
        # Were it killed before the request has left, librdkafka would say so itself.
        with pytest.raises(KafkaException):
            listed_offset(lost, 30)
