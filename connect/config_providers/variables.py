"""Replaces `${provider:path:key}` in a configuration by what the provider has there.

The path may be missing: `${env:SECRET}`. What no provider knows stays as it is, as in Kafka, so
that whoever reads the value can say what is wrong with it.
"""

import re
from collections.abc import Mapping

from millrace.connect.plugins import ConfigProvider

VARIABLE = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")


def resolved(
    configs: Mapping[str, str | None], providers: Mapping[str, ConfigProvider]
) -> dict[str, str | None]:
    """Return a configuration with its variables replaced; each path is asked for once."""
    wanted: dict[tuple[str, str], set[str]] = {}
    for value in configs.values():
        for found in VARIABLE.finditer(value or ""):
            wanted.setdefault((found[1], found[3] or ""), set()).add(found[4])
    known = {
        (name, path): providers[name].get(path, keys)
        for (name, path), keys in wanted.items()
        if name in providers
    }

    def replacement(found: re.Match[str]) -> str:
        return known.get((found[1], found[3] or ""), {}).get(found[4], found[0])

    return {
        name: None if value is None else VARIABLE.sub(replacement, value)
        for name, value in configs.items()
    }
