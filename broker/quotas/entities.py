"""The entities that have quotas, and the names of the quotas (KIP-546)."""

USER, CLIENT_ID, IP = "user", "client-id", "ip"

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Entity type and name, sorted by type. A name of None is the default of its type."""


def quota_entity(parts: dict[str, str | None]) -> QuotaEntity:
    """Return the key of an entity."""
    return tuple(sorted(parts.items(), key=lambda part: part[0]))
