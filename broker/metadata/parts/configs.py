"""Dynamic settings by resource (KIP-226, KIP-339, KIP-714, KIP-848), and quotas (KIP-546)."""

from collections.abc import Iterator, Mapping

from broker.quotas.client_quotas import QuotaEntity, quota_entity
from common.kafka.protocol.records.metadata import ClientQuotaRecord, ConfigRecord

Resource = tuple[int, str]  # resource type, resource name

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4  # by broker id; "" is the default of the whole cluster
CLIENT_METRICS_RESOURCE = 16
GROUP_RESOURCE = 32

CLUSTER_DEFAULT: Resource = (BROKER_RESOURCE, "")


class ConfigsImage:
    """All dynamic settings of the cluster; a setting that is not here has its default."""

    def __init__(self) -> None:
        self._settings: dict[Resource, dict[str, str]] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConfigsImage) and self._settings == other._settings

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __iter__(self) -> Iterator[Resource]:
        """Iterate over the resources that have settings."""
        return iter(self._settings)

    def settings_of(self, resource_type: int, name: str) -> Mapping[str, str]:
        """Return the settings of one resource."""
        return self._settings.get((resource_type, name), {})

    def replay(self, record: ConfigRecord) -> Resource:
        """Set one setting, or remove it if its value is null; return its resource."""
        resource = (record.resource_type, record.resource_name)
        settings = self._settings.setdefault(resource, {})
        if record.value is None:
            settings.pop(record.name, None)
        else:
            settings[record.name] = record.value
        if not settings:
            del self._settings[resource]
        return resource

    def forget(self, resource: Resource) -> bool:
        """Remove the settings of a deleted resource; return True if there were any."""
        return self._settings.pop(resource, None) is not None


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
