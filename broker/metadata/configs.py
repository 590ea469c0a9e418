"""Settings that were changed at run time, by resource: topics and brokers (KIP-226, KIP-339)."""

from collections.abc import Mapping

from broker.errors import ErrorCode, KafkaError
from broker.protocol.message import Message
from broker.protocol.records.metadata import ConfigRecord

Resource = tuple[int, str]  # resource type, resource name

SET, DELETE, APPEND, SUBTRACT = range(4)  # AlterConfigOp.OpType


class ConfigControl:
    """Owns every dynamic setting of the cluster. What is not here has its default."""

    def __init__(self) -> None:
        self._settings: dict[Resource, dict[str, str]] = {}

    def settings_of(self, resource_type: int, name: str) -> Mapping[str, str]:
        """Return what was set for one resource."""
        return self._settings.get((resource_type, name), {})

    def change(self, resource: Resource, wanted: Mapping[str, str]) -> list[Message]:
        """Return the records that make the settings of `resource` exactly `wanted`."""
        current = self.settings_of(*resource)
        return [
            ConfigRecord(
                resource_type=resource[0],
                resource_name=resource[1],
                name=name,
                value=wanted.get(name),
            )
            for name in sorted({*current, *wanted})
            if current.get(name) != wanted.get(name)
        ]

    def replay(self, record: ConfigRecord) -> None:
        """Set one setting, or take it away when its value is null."""
        resource = (record.resource_type, record.resource_name)
        settings = self._settings.setdefault(resource, {})
        if record.value is None:
            settings.pop(record.name, None)
        else:
            settings[record.name] = record.value
        if not settings:
            del self._settings[resource]

    def forget(self, resource: Resource) -> None:
        """Drop the settings of a resource that is gone."""
        self._settings.pop(resource, None)


def apply_operation(
    current: Mapping[str, str],
    *,
    name: str,
    operation: int,
    value: str | None,
    default: str,
    is_list: bool,
) -> dict[str, str]:
    """Return the settings after one IncrementalAlterConfigs operation.

    Raises INVALID_CONFIG for a null value or a list operation on a setting that is no list,
    INVALID_REQUEST for an unknown operation.
    """
    result = dict(current)
    if operation == DELETE:
        result.pop(name, None)
        return result
    if operation not in {SET, APPEND, SUBTRACT}:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operation type id {operation}")
    if value is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for {name}")
    if operation == SET:
        result[name] = value
        return result
    if not is_list:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Can't {'APPEND' if operation == APPEND else 'SUBTRACT'} to key {name} because its "
            "type is not LIST.",
        )
    items = [item for item in current.get(name, default).split(",") if item]
    changes = [item.strip() for item in value.split(",") if item.strip()]
    if operation == APPEND:
        items += [item for item in changes if item not in items]
    else:
        items = [item for item in items if item not in changes]
    result[name] = ",".join(items)
    return result
