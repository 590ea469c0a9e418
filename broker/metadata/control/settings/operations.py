"""The settings that a request wants: all of them, or the result of operations (KIP-339)."""

from collections.abc import Callable, Iterable, Mapping

from broker.metadata.control.limits import duplicates
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.alter_configs import AlterableConfig as ReplacingConfig
from common.kafka.protocol.messages.incremental_alter_configs import AlterableConfig

SET, DELETE, APPEND, SUBTRACT = range(4)  # AlterConfigOp.OpType


def compute_value(
    current: str | None, *, name: str, operation: int, value: str | None, list_default: str | None
) -> str | None:
    """Return a setting's value after one operation, None if it is removed.

    `list_default` is the default of a setting of type LIST, None for other types. Raise
    INVALID_REQUEST for a null value or an unknown operation, INVALID_CONFIG for a list operation
    on a setting of another type.
    """
    if operation == DELETE:
        return None
    if operation not in {SET, APPEND, SUBTRACT}:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operation type id {operation}")
    if value is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {name}")
    if operation == SET:
        return value
    if list_default is None:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Can't {'APPEND' if operation == APPEND else 'SUBTRACT'} to key {name} because its "
            "type is not LIST.",
        )
    items = [item for item in (list_default if current is None else current).split(",") if item]
    changes = [item.strip() for item in value.split(",") if item.strip()]
    if operation == APPEND:
        return ",".join(dict.fromkeys([*items, *changes]))
    taken = set(changes)
    return ",".join(item for item in items if item not in taken)


def replaced(configs: Iterable[ReplacingConfig]) -> dict[str, str]:
    """Return the settings of a resource after AlterConfigs; raise INVALID_REQUEST."""
    if duplicates(config.name for config in configs):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    wanted: dict[str, str] = {}
    for config in configs:
        if config.value is None:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Null value not supported for : {config.name}"
            )
        wanted[config.name] = config.value
    return wanted


def operated(
    current: Mapping[str, str],
    configs: Iterable[AlterableConfig],
    list_default: Callable[[str], str | None],
) -> dict[str, str]:
    """Return the settings of a resource after these operations; raise as `compute_value` does."""
    if duplicates(config.name for config in configs):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    wanted = dict(current)
    for config in configs:
        value = compute_value(
            wanted.get(config.name),
            name=config.name,
            operation=config.config_operation,
            value=config.value,
            list_default=list_default(config.name),
        )
        if value is None:
            wanted.pop(config.name, None)
        else:
            wanted[config.name] = value
    return wanted
