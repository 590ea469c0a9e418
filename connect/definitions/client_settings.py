"""What Kafka's clients may be told, as a validation shows what a connector overrides of them.

`client_settings.json` has the settings of the producer, the consumer and the admin client of Apache
Kafka 4.3.1, read from the ConfigDefs of its jars.
"""

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any


@lru_cache(1)
def _settings() -> dict[tuple[str, str], dict[str, Any]]:
    text = (files(__package__) / "client_settings.json").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = json.loads(text)
    return {(client, each["name"]): each for each in found for client in each["clients"]}


def client_key_info(client: str, setting: str) -> dict[str, Any] | None:
    """Describe a setting of a client, as REST does; None when Kafka's client has none of the name.

    `client` is producer, consumer or admin.
    """
    found = _settings().get((client, setting))
    if found is None:
        return None
    name = f"{client}.override.{setting}"
    return {
        "name": name,
        "type": found["type"],
        "required": found["required"],
        "default_value": found["default_value"],
        "importance": found["importance"],
        "documentation": f"`{setting}` of Kafka's {client} client.",
        "group": found["group"],
        "order_in_group": -1,
        "width": "NONE",
        "display_name": setting,
        "dependents": [],
    }
