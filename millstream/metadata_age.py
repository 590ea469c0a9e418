"""Client settings that keep metadata fresh, for what users import; the programs have theirs in
`common`."""

from collections.abc import Mapping
from typing import Final

METADATA_MAX_AGE_MS: Final = 5_000
"""How long a consumer of aiokafka keeps its metadata. When a broker that lost a leadership refuses
to list an offset, aiokafka asks the same broker again until its metadata expires: five minutes by
default."""

ADMIN_SETTINGS: Final[Mapping[str, str]] = {
    "topic.metadata.refresh.interval.ms": str(METADATA_MAX_AGE_MS),
    "enable.sparse.connections": "false",
}
"""For admin clients of librdkafka. When the controller in its metadata is gone, such a client does
not look for another one, so a request fails after its whole time-out. Meanwhile it connects to the
lost controller again and again without a pause, on two processors. It does that only with sparse
connections."""
