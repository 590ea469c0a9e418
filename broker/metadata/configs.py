"""The settings part of `ClusterState`, with the handler that changes them."""

from collections.abc import Mapping

from broker.metadata.control.config_operations import (
    APPEND,
    DELETE,
    SET,
    SUBTRACT,
    apply_operation,
)
from broker.metadata.parts.configs import ConfigsImage, Resource
from broker.protocol.message import Message
from broker.protocol.records.metadata import ConfigRecord

__all__ = ["APPEND", "DELETE", "SET", "SUBTRACT", "ConfigControl", "apply_operation"]


class ConfigControl(ConfigsImage):
    """Every dynamic setting of the cluster."""

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
