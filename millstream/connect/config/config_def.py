"""ConfigDef: the settings something has, and what is wrong with a configuration.

    CONFIG = ConfigDef().define(
        "topic", Type.STRING, Importance.HIGH, "Where records go.", validator=NonEmptyString()
    ).define("batch.size", Type.INT, Importance.LOW, "Records at once.", default=2000)

    CONFIG.parse(properties)         # -> name: value; raises ConfigException for the first mistake
    CONFIG.validate_all(properties)  # -> name: ConfigValue with every mistake, as the REST shows it

Meanings and messages are those of org.apache.kafka.common.config.ConfigDef in 4.3: a setting that
is there but null is null, not its default; a value that cannot be parsed still goes through the
validator, as null.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, ClassVar, Protocol, TypedDict, Unpack

from millstream.connect.config import types
from millstream.connect.config.types import (
    FindClass,
    Importance,
    Type,
    Width,
    imported_class,
    parse_type,
)
from millstream.connect.config.validators import LambdaValidator, Validator, ValidList
from millstream.connect.errors import ConfigException, text_of

logger = logging.getLogger(__name__)


class NoDefault(Enum):
    """What stands where a default would: the setting has to be given."""

    NO_DEFAULT_VALUE = "no default"


NO_DEFAULT_VALUE = NoDefault.NO_DEFAULT_VALUE


class Recommender(Protocol):
    """Proposes values for a setting, given the others."""

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> Sequence[Any]:
        """Return the values to choose from; none means that any is good."""

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        """Tell whether the setting means something, given the others."""


class KeyTraits(TypedDict, total=False):
    """What a setting has beside name, type, importance and documentation."""

    default: Any
    validator: Validator | None
    group: str | None
    order_in_group: int
    width: Width
    display_name: str
    dependents: Sequence[str]
    recommender: Recommender | None
    internal: bool


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One setting. Invariant: its default is of its type and passes its validator."""

    name: str
    type: Type
    importance: Importance
    documentation: str
    default: Any = NO_DEFAULT_VALUE
    validator: Validator | None = None
    group: str | None = None
    order_in_group: int = -1
    width: Width = Width.NONE
    display_name: str = ""
    dependents: Sequence[str] = ()  # settings whose values make sense only given this one's
    recommender: Recommender | None = None
    internal: bool = False  # left out of documentation

    def __post_init__(self) -> None:
        if not self.display_name:
            object.__setattr__(self, "display_name", self.name)
        if self.has_default:
            object.__setattr__(self, "default", parse_type(self.name, self.default, self.type))
            if self.validator is not None:
                self.validator(self.name, self.default)

    @property
    def has_default(self) -> bool:
        """Whether the setting may be left out."""
        return self.default is not NO_DEFAULT_VALUE


@dataclass(slots=True)
class ConfigValue:
    """What a configuration says for one setting, and what is wrong with it."""

    name: str
    value: Any = None
    recommended_values: Sequence[Any] = ()
    error_messages: list[str] = field(default_factory=list)
    visible: bool = True


class ConfigDef:
    """An ordered set of settings."""

    # As in Kafka: ConfigDef.Type.STRING is not the type of a schema.
    Type = types.Type
    Importance = types.Importance
    Width = types.Width
    NO_DEFAULT_VALUE: ClassVar = NO_DEFAULT_VALUE

    def __init__(self, base: "ConfigDef | None" = None) -> None:
        self.keys: dict[str, ConfigKey] = dict(base.keys) if base is not None else {}
        self.groups: list[str] = list(base.groups) if base is not None else []

    def define(
        self,
        name: str,
        kind: types.Type,
        importance: types.Importance,
        documentation: str,
        **traits: Unpack[KeyTraits],
    ) -> "ConfigDef":
        """Add a setting; gives this definition, so that calls can follow one another."""
        return self.add(ConfigKey(name, kind, importance, documentation, **traits))

    def add(self, key: ConfigKey) -> "ConfigDef":
        """Add a setting."""
        if key.name in self.keys:
            raise ConfigException(f"Configuration {key.name} is defined twice.")
        if key.group is not None and key.group not in self.groups:
            self.groups.append(key.group)
        self.keys[key.name] = key
        return self

    def parse(
        self, properties: Mapping[str, Any], find_class: FindClass = imported_class
    ) -> dict[str, Any]:
        """Return the value of every setting; raises ConfigException for the first mistake."""
        undefined = self._undefined_dependents()
        if undefined:
            raise ConfigException(
                "Some configurations in are referred in the dependents, but not defined: "
                f"{','.join(undefined)}"
            )
        return {name: self._parsed(key, properties, find_class) for name, key in self.keys.items()}

    def _parsed(self, key: ConfigKey, properties: Mapping[str, Any], find_class: FindClass) -> Any:
        if key.name in properties:
            value = parse_type(key.name, properties[key.name], key.type, find_class)
        elif not key.has_default:
            raise ConfigException(_missing(key))
        else:
            value = key.default
        if isinstance(key.validator, ValidList) and isinstance(value, list):
            value = _without_duplicates(key.name, value)
        if key.validator is not None:
            key.validator(key.name, value)
        return value

    def validate_all(
        self, properties: Mapping[str, Any], find_class: FindClass = imported_class
    ) -> dict[str, ConfigValue]:
        """Return what a configuration says for each setting, with every mistake in it."""
        values = {name: ConfigValue(name) for name in self.keys}
        for name in self._undefined_dependents():
            said = f"{name} is referred in the dependents, but not defined."
            values[name] = ConfigValue(name, error_messages=[said], visible=False)
        parsed: dict[str, Any] = {}
        for key in self._with_dependents():
            value = values[key.name]
            value.value = self._tried(key, properties, find_class, value.error_messages)
            parsed[key.name] = value.value
        for key in self._with_dependents():
            if key.recommender is not None:
                _recommend(key.recommender, values[key.name], parsed)
        return values

    def _tried(
        self,
        key: ConfigKey,
        properties: Mapping[str, Any],
        find_class: FindClass,
        errors: list[str],
    ) -> Any:
        value = None
        if key.name in properties:
            try:
                value = parse_type(key.name, properties[key.name], key.type, find_class)
            except ConfigException as error:
                errors.append(str(error))
        elif not key.has_default:
            errors.append(_missing(key))
        else:
            value = key.default
        if key.validator is not None:
            try:
                key.validator(key.name, value)
            except ConfigException as error:
                errors.append(str(error))
        return value

    def embed(self, key_prefix: str, group_prefix: str, order: int, child: "ConfigDef") -> None:
        """Add another definition's settings, their names behind a prefix."""
        for order_in_group, key in enumerate(child.sorted_keys(), order):
            self.add(
                replace(
                    key,
                    name=key_prefix + key.name,
                    validator=_embedded_validator(key_prefix, key.validator),
                    group=group_prefix if key.group is None else f"{group_prefix}: {key.group}",
                    order_in_group=order_in_group,
                    dependents=[key_prefix + name for name in key.dependents],
                    recommender=_embedded_recommender(key_prefix, key.recommender),
                )
            )

    def sorted_keys(self) -> list[ConfigKey]:
        """Return the settings as documentation lists them: by group, order, need, importance."""
        groups = {group: order for order, group in enumerate(self.groups)}

        def place(key: ConfigKey) -> tuple[Any, ...]:
            group = -1 if key.group is None else groups[key.group]
            return group, key.order_in_group, key.has_default, key.importance.value, key.name

        return sorted(self.keys.values(), key=place)

    def _undefined_dependents(self) -> list[str]:
        named = {name: None for key in self.keys.values() for name in key.dependents}
        return [name for name in named if name not in self.keys]

    def _with_dependents(self) -> Iterator[ConfigKey]:
        """Give the settings, each followed by what depends on it; one in a circle never comes."""
        dependents = {name for key in self.keys.values() for name in key.dependents}
        for name in self.keys:
            if name not in dependents:
                yield from self._below(name, ())

    def _below(self, name: str, above: tuple[str, ...]) -> Iterator[ConfigKey]:
        key = self.keys.get(name)
        if key is None or name in above:
            return
        yield key
        for dependent in key.dependents:
            yield from self._below(dependent, (*above, name))


def _missing(key: ConfigKey) -> str:
    return f'Missing required configuration "{key.name}" which has no default value.'


def _without_duplicates(name: str, value: list[Any]) -> list[Any]:
    distinct = list(dict.fromkeys(value))
    if len(distinct) != len(value):
        logger.warning("duplicate values removed setting=%s value=%s", name, text_of(value))
    return distinct


def _recommend(recommender: Recommender, value: ConfigValue, parsed: Mapping[str, Any]) -> None:
    try:
        proposed = list(recommender.valid_values(value.name, parsed))
        if value.recommended_values:
            proposed = [one for one in proposed if one in value.recommended_values]
        value.recommended_values = proposed
        value.visible = recommender.visible(value.name, parsed)
    except ConfigException as error:
        value.error_messages.append(str(error))


def _embedded_validator(prefix: str, validator: Validator | None) -> Validator | None:
    if validator is None:
        return None

    def check(name: str, value: Any) -> None:
        validator(name.removeprefix(prefix), value)

    return LambdaValidator(check, str(validator))


@dataclass(frozen=True, slots=True)
class _Embedded:
    """A recommender that sees its own definition's names only."""

    prefix: str
    recommender: Recommender

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> Sequence[Any]:
        return self.recommender.valid_values(name.removeprefix(self.prefix), self._own(parsed))

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        return self.recommender.visible(name.removeprefix(self.prefix), self._own(parsed))

    def _own(self, parsed: Mapping[str, Any]) -> dict[str, Any]:
        prefix = self.prefix
        return {
            name.removeprefix(prefix): value
            for name, value in parsed.items()
            if name.startswith(prefix)
        }


def _embedded_recommender(prefix: str, recommender: Recommender | None) -> Recommender | None:
    return None if recommender is None else _Embedded(prefix, recommender)
