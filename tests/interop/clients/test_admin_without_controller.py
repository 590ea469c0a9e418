"""An admin client of librdkafka, as all of ours are set, when the controller is gone."""

import json
import resource
import time

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from connect.worker.client_settings import ADMIN_SETTINGS
from millstream.testing import LocalCluster

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SECONDS = 60
SWITCHES = 20_000
"""Between threads: some hundred, or where it connects without a pause 30,000 a second."""


def switches() -> int:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_nvcsw + used.ru_nivcsw


class Connections:
    """Knows which brokers a client is connected to: it tells ten times a second."""

    def __init__(self) -> None:
        self.told = 0
        self._states: dict[int, str] = {}
        self.settings = {"statistics.interval.ms": 100, "stats_cb": self._see}

    def _see(self, statistics: str) -> None:
        self.told += 1
        brokers = json.loads(statistics)["brokers"].values()
        self._states = {broker["nodeid"]: broker["state"] for broker in brokers}

    def wait_until_lost(self, admin: AdminClient, broker_id: int) -> None:
        """Return when it has noticed; what it sends before is lost with the connection."""
        before, deadline = self.told, time.monotonic() + SECONDS
        while self.told == before or self._states[broker_id] == "UP":
            assert time.monotonic() < deadline, self._states
            admin.poll(0.1)


def test_it_finds_the_next_one_and_meanwhile_it_waits() -> None:
    with LocalCluster(brokers=3) as cluster:
        told = {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}
        connections = Connections()
        admin = AdminClient({**ADMIN_SETTINGS, **told, **connections.settings})
        admin.create_topics([NewTopic("before", 1, 3)])["before"].result(SECONDS)
        controller = admin.list_topics(timeout=SECONDS).controller_id
        cluster.kill(controller)
        connections.wait_until_lost(admin, controller)
        before = switches()
        made = admin.create_topics([NewTopic("after", 1, 2)], request_timeout=SECONDS)
        made["after"].result(SECONDS)
        assert switches() - before < SWITCHES
