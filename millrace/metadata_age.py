"""What clients need told, so that they do not go by metadata that is not so any more."""

from collections.abc import Mapping
from typing import Final

METADATA_MAX_AGE_MS: Final = 5_000
"""How long a consumer of aiokafka believes who leads a partition. When a position that it looks for
is refused by a broker that leads no more, it asks nobody who does, but that broker again, until it
looks for the leaders anyway: without this, once in five minutes."""

ADMIN_SETTINGS: Final[Mapping[str, str]] = {
    "topic.metadata.refresh.interval.ms": str(METADATA_MAX_AGE_MS),
    "enable.sparse.connections": "false",
}
"""For admin clients of librdkafka. When the controller that its metadata names is gone, such a
client asks nobody for another one: a request would fail after all of its time. Meanwhile it
connects to the one that is gone, again and again without a pause, on two processors; this it does
only where it connects to brokers when it has something for them, so it connects to all."""
