"""The operations of IncrementalAlterConfigs (KIP-339)."""

from broker.errors import ErrorCode, KafkaError

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
