"""What the operations of IncrementalAlterConfigs make of settings (KIP-339)."""

from broker.errors import ErrorCode, KafkaError

SET, DELETE, APPEND, SUBTRACT = range(4)  # AlterConfigOp.OpType


def compute_value(
    current: str | None, *, name: str, operation: int, value: str | None, list_default: str | None
) -> str | None:
    """Return a setting's value after one operation, None when it is taken away.

    `list_default` is the default of a list, None for a setting of another type. Raises
    INVALID_REQUEST for a null value or an unknown operation, INVALID_CONFIG for a list operation on
    a setting that is no list.
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
