"""Settings and values as Kafka Connect's REST shows them (ConfigKeyInfo, ConfigValueInfo)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from millstream.connect.config.config_def import ConfigKey, ConfigValue
from millstream.connect.config.types import Type, convert_to_string


def config_key_info(key: ConfigKey) -> dict[str, Any]:
    """Return what /connector-plugins/{plugin}/config lists for one setting."""
    return {
        "name": key.name,
        "type": key.type.name,
        "required": not key.has_default,
        "default_value": convert_to_string(key.default, key.type) if key.has_default else None,
        "importance": key.importance.name,
        "documentation": key.documentation,
        "group": key.group,
        "order_in_group": key.order_in_group,
        "width": key.width.name,
        "display_name": key.display_name,
        "dependents": list(key.dependents),
    }


def config_value_info(value: ConfigValue, kind: Type | None) -> dict[str, Any]:
    """Return what a validation says of one setting's value."""
    recommended = Type.STRING if kind is Type.LIST else kind
    return {
        "name": value.name,
        "value": convert_to_string(value.value, kind),
        "recommended_values": [
            convert_to_string(one, recommended) for one in value.recommended_values
        ],
        "errors": list(value.error_messages),
        "visible": value.visible,
    }


def config_infos(
    name: str,
    keys: Mapping[str, ConfigKey],
    values: Iterable[ConfigValue],
    groups: Sequence[str],
) -> dict[str, Any]:
    """Return the body of PUT /connector-plugins/{plugin}/config/validate.

    A value without a definition comes first, with `definition` null.
    """
    by_name = {value.name: value for value in values}
    configs = [
        {"definition": None, "value": config_value_info(value, None)}
        for value in by_name.values()
        if value.name not in keys
    ]
    for key in keys.values():
        value = by_name.get(key.name)
        shown = None if value is None else config_value_info(value, key.type)
        configs.append({"definition": config_key_info(key), "value": shown})
    return {
        "name": name,
        "error_count": sum(len(value.error_messages) for value in by_name.values()),
        "groups": list(groups),
        "configs": configs,
    }
