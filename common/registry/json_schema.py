"""Checks values by a JSON Schema that a stranger may have made: in bounded time, and in words.

Package `jsonschema` knows the drafts. Some of its keywords are replaced: patterns are those of
google-re2, which never backtracks; `uniqueItems` compares by a canonical form, and not each item
with all others. And every keyword that is applied is a step: a schema that refers to itself twice
at each level is given up after a number of steps, which grows with the value.

Pure: whoever has no time for many steps asks with fewer of them first.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Final

import re2
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.validators import Draft7Validator, extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT7

_FREE_STEPS: Final = 50_000
_STEPS_PER_VALUE: Final = 100
_MOST_STEPS: Final = 2_000_000
_PATTERN_STEP: Final = 1_000_000
"""A step of a pattern: the size of its program times the characters of the text."""
_PATTERN_BYTES: Final = 1 << 20
_SHOWN: Final = 300
_LEFT: Final[ContextVar[int]] = ContextVar("steps left")
"""Of the check that runs: each thread and each task has its own."""
_UNICODE_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|.)", re.DOTALL)


class JsonSchemaError(ValueError):
    """The text is no JSON Schema, or one that cannot be applied; the message says why."""


class TooManyStepsError(Exception):
    """The steps were not enough to judge a value."""


class JsonSchema:
    """Owns one schema. `references` are the texts of the schemas it refers to, by name.

    No other reference is resolved: a reference to a web address is refused, never fetched.
    """

    def __init__(self, text: str, references: Mapping[str, str] | None = None) -> None:
        """Raises JsonSchemaError."""
        try:
            schema = json.loads(text)
            kind = validator_for(schema, default=Draft7Validator)
            self._check_schema(kind, schema)
            resources = [
                (name, DRAFT7.create_resource(json.loads(each)))
                for name, each in (references or {}).items()
            ]
            registry: Any = Registry().with_resources(resources)
            self._validator = _bounded(kind)(schema, registry=registry)
        except SchemaError as error:
            raise JsonSchemaError(f"no JSON Schema: {error.message[:_SHOWN]}") from None
        except TooManyStepsError:
            raise JsonSchemaError("no JSON Schema: it takes too long to check") from None
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise JsonSchemaError(f"no JSON Schema: {error}") from None
        title = schema.get("title") if isinstance(schema, dict) else None
        self.title = title if isinstance(title, str) else None

    def _check_schema(self, kind: Any, schema: Any) -> None:
        _LEFT.set(_most_steps(schema))
        validator = _bounded(kind)(kind.META_SCHEMA, format_checker=kind.FORMAT_CHECKER)
        error = best_match(validator.iter_errors(schema))
        if error is not None:
            raise SchemaError.create_from(error)

    @property
    def schema(self) -> Any:
        """The schema itself."""
        return self._validator.schema

    def why_wrong(self, value: Any, steps: int | None = None) -> str | None:
        """Return why a value is not of the schema, None if it is.

        Raises JsonSchemaError if the schema cannot be applied or takes too many steps, and
        TooManyStepsError if it takes more than `steps`.
        """
        _LEFT.set(_most_steps(value) if steps is None else steps)
        try:
            error = best_match(self._validator.iter_errors(value))
        except TooManyStepsError:
            if steps is not None:
                raise
            raise JsonSchemaError("the schema takes too long to check this value") from None
        except Unresolvable as unresolvable:
            raise JsonSchemaError(
                f"the schema refers to what is not there: {unresolvable}"
            ) from None
        except RecursionError:
            raise JsonSchemaError("the value or its schema is nested too deeply") from None
        # A pattern that is none, a divisor of zero.
        except Exception as failure:  # noqa: BLE001
            raise JsonSchemaError(f"the schema cannot be applied: {failure}") from None
        return None if error is None else f"{error.json_path}: {error.message[:_SHOWN]}"


@lru_cache(maxsize=16)
def _bounded(kind: Any) -> Any:
    """Return the validator of a draft with our keywords; each of them takes a step."""
    keywords = {**kind.VALIDATORS, "pattern": _pattern, "uniqueItems": _unique_items}
    keywords["patternProperties"] = _pattern_properties
    keywords["additionalProperties"] = _additional_properties
    return extend(kind, {name: _counted(each) for name, each in keywords.items()})


def _counted(keyword: Callable[..., Any]) -> Callable[..., Any]:
    def apply(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        _take(1)
        for error in keyword(validator, value, instance, schema) or ():
            # The package writes the whole value into the message of each error.
            _take(len(error.message) // _SHOWN)
            error.message = error.message[:_SHOWN]
            yield error

    return apply


def _take(steps: int) -> None:
    left = _LEFT.get() - steps
    _LEFT.set(left)
    if left < 0:
        raise TooManyStepsError


def _finds(pattern: str, text: str) -> bool:
    compiled = _compiled(pattern)
    _take(compiled.programsize * len(text) // _PATTERN_STEP)
    return compiled.search(text) is not None


def _pattern(_: Any, pattern: str, text: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(text, str) and not _finds(pattern, text):
        yield ValidationError(f"{text!r:.{_SHOWN}} does not match {pattern!r:.{_SHOWN}}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], found: Any, _: Any
) -> Iterator[ValidationError]:
    if not isinstance(found, dict):
        return
    for pattern, schema in patterns.items():
        for name, value in found.items():
            _take(1)
            if _finds(pattern, name):
                yield from validator.descend(value, schema, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, allowed: Any, found: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if not isinstance(found, dict):
        return
    more = [name for name in found if not _is_named(name, schema)]
    if isinstance(allowed, dict):
        for name in more:
            yield from validator.descend(found[name], allowed, path=name)
    elif not allowed and more:
        named = ", ".join(map(repr, more[:5]))
        yield ValidationError(f"Additional properties are not allowed ({named})")


def _is_named(name: str, schema: Mapping[str, Any]) -> bool:
    _take(1)
    return name in schema.get("properties", {}) or any(
        _finds(pattern, name) for pattern in schema.get("patternProperties", {})
    )


def json_key(value: Any) -> str:
    """Return a text that is the same for all spellings of a value: 1 and 1.0 are equal."""
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_plain(member) for member in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _unique_items(_: Any, is_unique: bool, items: Any, __: Any) -> Iterator[ValidationError]:
    if (
        is_unique
        and isinstance(items, list)
        and len({json_key(each) for each in items}) < len(items)
    ):
        yield ValidationError(f"{items!r:.{_SHOWN}} has non-unique elements")


def _most_steps(value: Any) -> int:
    return min(_MOST_STEPS, _FREE_STEPS + _STEPS_PER_VALUE * _values_of(value))


def _values_of(value: Any) -> int:
    count, waiting = 0, [value]
    while waiting:
        found = waiting.pop()
        count += 1
        inner: Iterable[Any] = found.values() if isinstance(found, dict) else ()
        waiting += found if isinstance(found, list) else inner
    return count


@lru_cache(maxsize=1000)
def _compiled(pattern: str) -> Any:
    """Return a pattern of ECMA 262 compiled by google-re2; raises JsonSchemaError."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PATTERN_BYTES
    try:
        return re2.compile(_UNICODE_ESCAPE.sub(_in_re2, pattern), options)
    except re2.error as error:
        reason = error.args[0]
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise JsonSchemaError(f"the pattern {pattern[:_SHOWN]!r} is not used: {reason}") from None


def _in_re2(escape: re.Match[str]) -> str:
    return escape[0] if escape[1] is None else f"\\x{{{escape[1]}}}"
