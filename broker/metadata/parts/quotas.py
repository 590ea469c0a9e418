"""The quotas of clients, users and addresses in the metadata (KIP-546)."""

from broker.quotas.entities import QuotaEntity, quota_entity
from common.kafka.protocol.records.metadata import ClientQuotaRecord


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
