"""What of a configuration stands for something else: `${provider:path:key}`.

A connector is started with the values, and so its tasks' configurations have them. What is written
to the config topic has the variables again: a secret is never written (KIP-297).
"""

import re
from typing import Final

from connect.herder.config_records import Config

_VARIABLE: Final = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")


def with_variables(connector_config: Config, task_config: Config) -> dict[str, str | None]:
    """Put back the variables under the names under which the connector's configuration has them."""
    return {
        name: connector_config[name] if _has_variable(connector_config.get(name)) else value
        for name, value in task_config.items()
    }


def _has_variable(value: str | None) -> bool:
    return value is not None and _VARIABLE.search(value) is not None
