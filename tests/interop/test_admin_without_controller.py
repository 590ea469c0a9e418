"""An admin client of librdkafka, as all of ours are set, when the controller is gone."""

import resource

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from millrace.stale_metadata import ADMIN_SETTINGS
from millrace.testing import LocalCluster

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SECONDS = 60
SWITCHES = 20_000
"""Between threads: some hundred, or where it connects without a pause 30,000 a second."""


def switches() -> int:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_nvcsw + used.ru_nivcsw


def test_it_finds_the_next_one_and_meanwhile_it_waits() -> None:
    with LocalCluster(brokers=3) as cluster:
        told = {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}
        admin = AdminClient({**ADMIN_SETTINGS, **told})
        admin.create_topics([NewTopic("before", 1, 3)])["before"].result(SECONDS)
        cluster.kill(admin.list_topics(timeout=SECONDS).controller_id)
        before = switches()
        made = admin.create_topics([NewTopic("after", 1, 2)], request_timeout=SECONDS)
        made["after"].result(SECONDS)
        assert switches() - before < SWITCHES
