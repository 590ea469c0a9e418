"""Topics for tests: when the call returns, the topic exists for every client."""

import time
from collections.abc import Mapping
from typing import Any

TIMEOUT_SECONDS = 30.0
ADMIN_SETTINGS = {
    "topic.metadata.refresh.interval.ms": 5_000,
    "enable.sparse.connections": False,
}
"""An admin client of librdkafka asks a killed controller until its metadata expires."""
POLL_SECONDS = 0.01


def create_topic(
    client_settings: Mapping[str, Any],
    name: str,
    partitions: int,
    replication_factor: int,
    settings: Mapping[str, str],
) -> None:
    """Create a topic and wait until each listed broker knows a leader of every partition.

    Raise confluent_kafka.KafkaException if the brokers refuse the topic, and TimeoutError.
    """
    ask_for_topic(client_settings, name, partitions, replication_factor, settings)
    wait_for_topic(client_settings, name, partitions)


def ask_for_topic(
    client_settings: Mapping[str, Any],
    name: str,
    partitions: int,
    replication_factor: int,
    settings: Mapping[str, str],
) -> None:
    """Create a topic; raise confluent_kafka.KafkaException if the brokers refuse it."""
    # Imported here, so that a test without topics does not wait for the library.
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({**ADMIN_SETTINGS, **client_settings, "log_level": 2})
    wanted = NewTopic(name, partitions, replication_factor, config=dict(settings))
    admin.create_topics([wanted])[name].result(TIMEOUT_SECONDS)


def wait_for_topic(client_settings: Mapping[str, Any], name: str, partitions: int) -> None:
    """Wait until each listed broker knows a leader of every partition; raise TimeoutError."""
    from confluent_kafka.admin import AdminClient

    for address in client_settings["bootstrap.servers"].split(","):
        # One client for each broker: a broker may know the topic later than another one.
        one = {**client_settings, "bootstrap.servers": address, "log_level": 2}
        _wait(AdminClient({**ADMIN_SETTINGS, **one}), name, partitions)


def _wait(admin: Any, name: str, partitions: int) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        found = admin.list_topics(name, timeout=TIMEOUT_SECONDS).topics[name].partitions.values()
        if len(found) == partitions and all(each.leader >= 0 for each in found):
            return
        time.sleep(POLL_SECONDS)
    raise TimeoutError(f"topic {name} has no leaders after {TIMEOUT_SECONDS:.0f} s")
