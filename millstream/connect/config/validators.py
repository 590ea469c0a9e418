"""What a setting's value has to be: the validators of Kafka's ConfigDef, with their messages.

A validator is called with the setting's name and its parsed value, raises ConfigException when the
value is wrong, and describes itself by `str` as documentation pages show it.
"""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from millstream.connect.errors import ConfigException, text_of


class Validator(Protocol):
    """Raises ConfigException when a value is not one a setting can have."""

    def __call__(self, name: str, value: Any, /) -> None:
        """Check the value of the setting `name`."""


@dataclass(frozen=True, slots=True)
class Range:
    """A number not smaller than one and not larger than another."""

    at_least: float | None = None
    at_most: float | None = None

    def __call__(self, name: str, value: Any) -> None:
        if value is None:
            raise ConfigException.of_value(name, None, "Value must be non-null")
        if self.at_least is not None and value < self.at_least:
            raise ConfigException.of_value(name, value, f"Value must be at least {self.at_least}")
        if self.at_most is not None and value > self.at_most:
            raise ConfigException.of_value(
                name, value, f"Value must be no more than {self.at_most}"
            )

    def __str__(self) -> str:
        ends = (self.at_least, "...", self.at_most)
        return f"[{','.join(str(end) for end in ends if end is not None)}]"


class ValidString:
    """One of some texts."""

    def __init__(self, *valid: str) -> None:
        self.valid = valid

    def __call__(self, name: str, value: Any) -> None:
        if value not in self.valid:
            raise ConfigException.of_value(
                name, value, f"String must be one of: {', '.join(self.valid)}"
            )

    def __str__(self) -> str:
        return f"[{', '.join(self.valid)}]"


class CaseInsensitiveValidString:
    """One of some texts, in whatever case."""

    def __init__(self, *valid: str) -> None:
        self.valid = tuple(text.upper() for text in valid)

    def __call__(self, name: str, value: Any) -> None:
        if value is None or value.upper() not in self.valid:
            raise ConfigException.of_value(
                name, value, f"String must be one of (case insensitive): {', '.join(self.valid)}"
            )

    def __str__(self) -> str:
        return f"(case insensitive) [{', '.join(self.valid)}]"


class ValidList:
    """A list without duplicates, of any texts or of some; whether it may be empty or missing."""

    def __init__(
        self, *valid: str, is_empty_allowed: bool = True, is_null_allowed: bool = False
    ) -> None:
        self.valid = valid
        self.is_empty_allowed = is_empty_allowed
        self.is_null_allowed = is_null_allowed

    def __call__(self, name: str, value: Any) -> None:
        if value is None:
            if self.is_null_allowed:
                return
            raise ConfigException(f"Configuration '{name}' values must not be null.")
        if not value and not self.is_empty_allowed:
            those = f"[{', '.join(self.valid)}]" if self.valid else "any non-empty value"
            raise ConfigException(
                f"Configuration '{name}' must not be empty. Valid values include: {those}"
            )
        if len(set(value)) != len(value):
            raise ConfigException(f"Configuration '{name}' values must not be duplicated.")
        for one in value:
            self._check(name, one)

    def _check(self, name: str, one: object) -> None:
        if one == "":
            raise ConfigException(f"Configuration '{name}' values must not be empty.")
        if self.valid and one not in self.valid:
            raise ConfigException.of_value(
                name, one, f"String must be one of: {', '.join(self.valid)}"
            )

    def __str__(self) -> str:
        return f"[{', '.join(self.valid)}]" if self.valid else ""


class ListSize:
    """A list of at most so many entries."""

    def __init__(self, at_most: int) -> None:
        self.at_most = at_most

    def __call__(self, name: str, value: Any) -> None:
        if len(value) > self.at_most:
            raise ConfigException.of_value(
                name, value, f"exceeds maximum list size of [{self.at_most}]."
            )

    def __str__(self) -> str:
        return f"List containing maximum of {self.at_most} elements"


class NonNullValidator:
    """Anything but nothing."""

    def __call__(self, name: str, value: Any) -> None:
        if value is None:
            raise ConfigException.of_value(name, None, "entry must be non null")

    def __str__(self) -> str:
        return "non-null string"


class NonEmptyString:
    """A text of at least one character, or nothing."""

    def __call__(self, name: str, value: Any) -> None:
        if value == "":
            raise ConfigException.of_value(name, value, "String must be non-empty")

    def __str__(self) -> str:
        return "non-empty string"


class NonEmptyStringWithoutControlChars:
    """A text of at least one character, none of them a control character; or nothing."""

    def __call__(self, name: str, value: Any) -> None:
        if value == "":
            raise ConfigException.of_value(name, value, "String may not be empty")
        found = [str(ord(one)) for one in value or "" if unicodedata.category(one) == "Cc"]
        if found:
            raise ConfigException.of_value(
                name,
                value,
                "String may not contain control sequences but had the following ASCII chars: "
                f"{', '.join(found)}",
            )

    def __str__(self) -> str:
        return "non-empty string without ISO control characters"


class LambdaValidator:
    """Any function, with the words that describe it."""

    def __init__(self, check: Callable[[str, Any], None], description: str) -> None:
        self._check = check
        self._description = description

    def __call__(self, name: str, value: Any) -> None:
        self._check(name, value)

    def __str__(self) -> str:
        return self._description


class CompositeValidator:
    """Several validators, all of which have to agree."""

    def __init__(self, *validators: Validator) -> None:
        self.validators: Sequence[Validator] = validators

    def __call__(self, name: str, value: Any) -> None:
        for validator in self.validators:
            validator(name, value)

    def __str__(self) -> str:
        return ", ".join(map(text_of, self.validators))
