"""Topics for tests: made, and there for every client, before the call returns."""

import time
from collections.abc import Mapping
from typing import Any

from millrace.metadata_age import ADMIN_SETTINGS

TIMEOUT_SECONDS = 30.0
POLL_SECONDS = 0.01


def create_topic(
    client_settings: Mapping[str, Any],
    name: str,
    partitions: int,
    replication_factor: int,
    settings: Mapping[str, str],
) -> None:
    """Make a topic and wait until each broker that is listed knows a leader of every partition.

    Raises confluent_kafka.KafkaException where the brokers refuse it, and TimeoutError.
    """
    # Imported here: a test that makes no topic does not wait for the library.
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    quiet = {**client_settings, "log_level": 2}
    admin = AdminClient({**ADMIN_SETTINGS, **quiet})
    wanted = NewTopic(name, partitions, replication_factor, config=dict(settings))
    admin.create_topics([wanted])[name].result(TIMEOUT_SECONDS)
    for address in client_settings["bootstrap.servers"].split(","):
        # A client of one broker each: what one has read another may not have read yet.
        each = AdminClient({**ADMIN_SETTINGS, **quiet, "bootstrap.servers": address})
        _wait(each, name, partitions)


def _wait(admin: Any, name: str, partitions: int) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        found = admin.list_topics(name, timeout=TIMEOUT_SECONDS).topics[name].partitions.values()
        if len(found) == partitions and all(each.leader >= 0 for each in found):
            return
        time.sleep(POLL_SECONDS)
    raise TimeoutError(f"topic {name} has no leaders after {TIMEOUT_SECONDS:.0f} s")
