"""Variables in a configuration: `${provider:path:key}`.

A connector starts with the variables' values, so its task configurations contain them. Before these
are written to the config topic, the variables are put back: a secret is never written (KIP-297).
"""

import re
from typing import Final

from connect.herder.config_records import Config

_VARIABLE: Final = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")


def with_variables(connector_config: Config, task_config: Config) -> dict[str, str | None]:
    """Put the variables of the connector's configuration back into a task's configuration."""
    return {
        name: connector_config[name] if _has_variable(connector_config.get(name)) else value
        for name, value in task_config.items()
    }


def _has_variable(value: str | None) -> bool:
    return value is not None and _VARIABLE.search(value) is not None
