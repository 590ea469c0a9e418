"""A share group of which another broker takes over the disk, with a record that was given back.

Every broker in turn accepts what it finds but for one record, which it releases. The next broker
gives that record out once more, with one delivery more, and nothing that was accepted.
"""

import time

import confluent_kafka

from common.kafka.admin.client import AdminClient
from common.kafka.admin.configs import Resource, ResourceType, alter
from common.kafka.admin.settings import AdminSettings
from tests.lib.transactional_clients import GIVE_UP_SECONDS

GROUP = "sharers"


class ShareGroupTakenOver:
    """Goes with a folder from one broker to the next."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._given_back: dict[str, int] = {}
        earliest = {"share.auto.offset.reset": "earliest"}
        with AdminClient(AdminSettings.of(bootstrap)) as admin:
            alter(admin, {Resource(ResourceType.GROUP, GROUP): earliest})

    def go_on(self, bootstrap: str, produced: set[str]) -> None:
        """Find what was produced and what was given back, and give back one record."""
        consumer = confluent_kafka.ShareConsumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": GROUP,
                "share.acknowledgement.mode": "explicit",
            }
        )
        consumer.subscribe([self._topic])
        given_back = min(produced)
        found: dict[str, int] = {}
        deadline = time.monotonic() + GIVE_UP_SECONDS
        while not produced | self._given_back.keys() <= found.keys():
            assert time.monotonic() < deadline, (found, produced)
            for message in consumer.poll(1.0):
                assert message.error() is None, message.error()
                value = (message.value() or b"").decode()
                found[value] = message.delivery_count() or 0
                release = confluent_kafka.AcknowledgeType.RELEASE
                accept = confluent_kafka.AcknowledgeType.ACCEPT
                consumer.acknowledge(message, release if value == given_back else accept)
        assert not [error for error in consumer.commit_sync(GIVE_UP_SECONDS).values() if error]
        consumer.close()
        assert found.keys() == produced | self._given_back.keys()
        for value, count in found.items():
            # The consumer may have got the same record again after it was released.
            before = self._given_back.get(value, 0)
            again = value in self._given_back or value == given_back
            assert count > before if again else count == 1, (value, count, before)
        self._given_back = {given_back: found[given_back]}
