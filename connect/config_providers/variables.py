"""Replaces `${provider:path:key}` in a configuration by the provider's value.

The path may be missing: `${env:SECRET}`. A variable without a value stays as it is, as in Kafka, so
that the code that reads the setting reports the error.
"""

import re
from collections.abc import Mapping

from millstream.connect.plugins import ConfigProvider

VARIABLE = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")

Config = Mapping[str, str | None]


class Variables:
    """The values of the variables of some configurations, as they were when they were asked for."""

    def __init__(self, values: Mapping[str, str]) -> None:
        """`values` are by variable as it is written: `${env:SECRET}`."""
        self.values = values

    @classmethod
    def of(cls, *configs: Config, providers: Mapping[str, ConfigProvider]) -> "Variables":
        """Ask the providers for what the configurations name; each path is asked for once."""
        wanted: dict[tuple[str, str], dict[str, str]] = {}
        for config in configs:
            for value in config.values():
                for found in VARIABLE.finditer(value or ""):
                    wanted.setdefault((found[1], found[3] or ""), {})[found[0]] = found[4]
        values: dict[str, str] = {}
        for (name, path), keys in wanted.items():
            if name in providers:
                known = providers[name].get(path, set(keys.values()))
                values |= {text: known[key] for text, key in keys.items() if key in known}
        return cls(values)

    @property
    def written_for(self) -> dict[str, str]:
        """Return the variables by their values."""
        return {value: text for text, value in self.values.items()}

    def filled(self, config: Config) -> dict[str, str | None]:
        """Return a configuration with its variables replaced."""
        return {
            name: None
            if value is None
            else VARIABLE.sub(lambda found: self.values.get(found[0], found[0]), value)
            for name, value in config.items()
        }
