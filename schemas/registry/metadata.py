"""Metadata and rule sets of schemas, with the form of Confluent's ("Data contracts")."""

from collections.abc import Callable
from typing import Any, Final

from schemas.registry import refusals
from schemas.registry.refusals import RegistryError

_RULE_TEXTS: Final = ("name", "doc", "kind", "mode", "type", "expr", "onSuccess", "onFailure")
_RULE_LISTS: Final = ("migrationRules", "domainRules", "encodingRules")


def checked_metadata(value: Any) -> dict[str, Any] | None:
    """Return metadata. Raises RegistryError, 42201, for invalid metadata."""
    metadata = _object("metadata", value)
    if metadata is not None:
        _check("metadata.tags", metadata.get("tags"), _is_map_of(_is_texts))
        _check("metadata.properties", metadata.get("properties"), _is_map_of(_is_plain))
        _check("metadata.sensitive", metadata.get("sensitive"), _is_texts)
    return metadata


def checked_rule_set(value: Any) -> dict[str, Any] | None:
    """Return a rule set. Raises RegistryError, 42201, for an invalid one."""
    rules = _object("ruleSet", value)
    if rules is not None:
        for name in _RULE_LISTS:
            _check(f"ruleSet.{name}", rules.get(name), _is_list)
            for rule in rules.get(name) or ():
                _check_rule(f"ruleSet.{name}", rule)
        _check("ruleSet.enableAt", rules.get("enableAt"), _is_plain)
    return rules


def _check_rule(where: str, rule: Any) -> None:
    if not isinstance(rule, dict):
        raise _invalid(where)
    for name in _RULE_TEXTS:
        _check(f"{where}.{name}", rule.get(name), _is_plain)
    _check(f"{where}.tags", rule.get("tags"), _is_texts)
    _check(f"{where}.params", rule.get("params"), _is_map_of(_is_plain))


def _object(name: str, value: Any) -> dict[str, Any] | None:
    if not isinstance(value, dict | None):
        raise refusals.invalid_schema(f"Invalid {name}: not an object")
    return value


def _check(where: str, value: Any, is_right: Callable[[Any], bool]) -> None:
    if value is not None and not is_right(value):
        raise _invalid(where)


def _invalid(where: str) -> RegistryError:
    return refusals.invalid_schema(f"Invalid {where}: wrong structure")


def _is_plain(value: Any) -> bool:
    """Texts, and the numbers that many clients send for them."""
    return isinstance(value, str | int | float)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_map_of(is_right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(is_right(each) for each in value.values())
