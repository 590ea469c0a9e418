"""Quotas of clients, users and addresses (KIP-546)."""

from broker.protocol.records.metadata import ClientQuotaRecord

# Entity type and name, sorted by type. A name of None is the default of its type.
QuotaEntity = tuple[tuple[str, str | None], ...]


def quota_entity(parts: "dict[str, str | None]") -> QuotaEntity:
    """Return the key of an entity."""
    return tuple(sorted(parts.items(), key=lambda part: part[0]))


class QuotasImage(dict[QuotaEntity, dict[str, float]]):
    """All quotas: entity -> key -> value."""

    def replay(self, record: ClientQuotaRecord) -> None:
        """Set or remove one quota."""
        entity = quota_entity({part.entity_type: part.entity_name for part in record.entity})
        quotas = self.setdefault(entity, {})
        if record.remove:
            quotas.pop(record.key, None)
        else:
            quotas[record.key] = record.value
        if not quotas:
            del self[entity]
