"""Settings by type: the given texts over their defaults, checked against their type's limits."""

from collections.abc import Mapping

from broker.config.known_settings import KNOWN_SETTINGS
from broker.config.sources import LISTENER_PREFIX, invalid

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
_LIMITS = {"SHORT": 2**15 - 1, "INT": INT32_MAX, "LONG": INT64_MAX}


class Values:
    """The given settings over their defaults. Every method raises KafkaError(INVALID_CONFIG)."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.given = settings

    def of_listener(self, listener: str) -> "Values":
        """Return the settings as they are for one listener: its own beat the general ones."""
        prefix = f"{LISTENER_PREFIX}{listener.lower()}."
        own = {
            name.lower().removeprefix(prefix): value
            for name, value in self.given.items()
            if name.lower().startswith(prefix)
        }
        return Values({**self.given, **own})

    def of_mechanism(self, mechanism: str) -> "Values":
        """Return the settings as they are for one SASL mechanism of a listener."""
        prefix = f"{mechanism.lower()}."
        own = {
            name.removeprefix(prefix): value
            for name, value in self.given.items()
            if name.startswith(prefix)
        }
        return Values({**self.given, **own})

    def text(self, name: str) -> str:
        """Return the text of a setting, the empty text for null.

        A value loses its outer blanks, but for texts and passwords, as in Kafka's `ConfigDef`.
        """
        known = KNOWN_SETTINGS[name]
        value = self.given.get(name)
        if value is None:
            return known.default or ""
        return value if known.type in {"STRING", "PASSWORD"} else value.strip()

    def text_or_none(self, name: str) -> str:
        """Return the text of a setting that clients have and nodes need not know."""
        return self.text(name) if name in KNOWN_SETTINGS else self.given.get(name, "")

    def items(self, name: str) -> list[str]:
        """Return a list setting, without empty items."""
        return [item.strip() for item in self.text(name).split(",") if item.strip()]

    def integer(self, name: str, minimum: int) -> int:
        """Return an integer within the setting's type that is at least `minimum`."""
        text = self.text(name)
        limit = _LIMITS[KNOWN_SETTINGS[name].type]
        try:
            value = int(text)
        except ValueError:
            raise invalid(f"{name}={text}: not a whole number") from None
        if not minimum <= value <= limit:
            raise invalid(f"{name}={text}: must be between {minimum} and {limit}")
        return value

    def check_type(self, name: str) -> None:
        """Raise INVALID_CONFIG unless the value has the setting's type."""
        match KNOWN_SETTINGS[name].type:
            case "INT" | "LONG" | "SHORT":
                self.integer(name, -(2**63))
            case "DOUBLE":
                self.positive_number(name)
            case "BOOLEAN":
                self.boolean(name)
            case _:
                pass  # Every text will do.

    def positive_number(self, name: str) -> float:
        """Return a number greater than zero."""
        text = self.text(name)
        try:
            value = float(text)
        except ValueError:
            raise invalid(f"{name}={text}: not a number") from None
        if not value > 0:
            raise invalid(f"{name}={text}: must be greater than 0")
        return value

    def boolean(self, name: str) -> bool:
        """Return a boolean, in Java's spelling."""
        text = self.text(name).lower()
        if text not in {"true", "false"}:
            raise invalid(f"{name}={text}: must be true or false")
        return text == "true"
