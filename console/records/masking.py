"""Hides parts of records by the rules of whoever runs the console. Pure.

    --mask 'customers*:value.email'     a field of a value that is JSON or has a schema
    --mask 'orders:header.authorization'
    --mask '*:key'

A rule is TOPICS:PLACE. TOPICS is a pattern with `*` and `?`; PLACE is `key`, `value`, `headers`,
`header.NAME`, `key.PATH` or `value.PATH`. The rules are applied to a row before anything looks at
it, searches too. What cannot be read as JSON is hidden whole where a rule names a field of it.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from common.process.json_text import NotJsonError, read_json
from console.records.rows import Part, Row

HIDDEN: Final = "•••"
Path = Sequence[str]


class MaskError(ValueError):
    """A rule cannot be understood; the message says why."""


@dataclass(frozen=True, slots=True)
class MaskRule:
    """One rule: a pattern of topics, a place, and a path within it."""

    topics: str
    place: str
    path: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> "MaskRule":
        """Read a rule; raise MaskError."""
        topics, colon, rest = text.partition(":")
        place, _, path = rest.partition(".")
        if not colon or not topics or place not in ("key", "value", "headers", "header"):
            raise MaskError(f"--mask {text}: a rule is TOPICS:PLACE, as customers*:value.email")
        if (place == "header") != (bool(path) and place not in ("key", "value")):
            raise MaskError(f"--mask {text}: header.NAME for one header, headers for all")
        if place == "header":
            return cls(topics, place, (path,))
        steps = tuple(path.split(".")) if path else ()
        if "" in steps:
            raise MaskError(f"--mask {text}: the path has an empty step")
        return cls(topics, place, steps)


class TopicMask:
    """The rules of one topic."""

    def __init__(self, rules: Iterable[MaskRule]) -> None:
        self._rules = list(rules)

    def applied_to(self, row: Row) -> Row:
        """Return a row without what the rules hide."""
        for rule in self._rules:
            match rule.place:
                case "key":
                    row = row._replace(key=_hidden(row.key, rule.path))
                case "value":
                    row = row._replace(value=_hidden(row.value, rule.path))
                case _:
                    row = row._replace(
                        headers=tuple(
                            (name, _hidden(part, ()) if rule.place == "headers"
                             or name.casefold() == rule.path[0].casefold() else part)
                            for name, part in row.headers
                        )
                    )  # fmt: skip
        return row


def mask_of(rules: Iterable[MaskRule], topic: str) -> TopicMask | None:
    """Return the mask of a topic, None if no rule names it."""
    chosen = [rule for rule in rules if fnmatchcase(topic, rule.topics)]
    return TopicMask(chosen) if chosen else None


def _hidden(part: Part, path: Path) -> Part:
    if part.kind == "null":
        return part
    note = "hidden by a rule of --mask"
    if path and part.is_json and not part.is_cut:
        try:
            value = read_json(part.text, may_have_halves=True)
            text = json.dumps(_without(value, path), ensure_ascii=False)
            text.encode()
        except (NotJsonError, ValueError, RecursionError):
            return Part(HIDDEN, "hidden", 0, note)
        notes = f"{part.note}; partly {note}" if part.note else f"partly {note}"
        return part._replace(text=text, note=notes)
    return Part(HIDDEN, "hidden", 0, note)


def _without(value: Any, path: Path) -> Any:
    """Return a value whose part at a path is hidden; lists and unions need no step."""
    if not path:
        return HIDDEN
    if isinstance(value, list):
        return [_without(each, path) for each in value]
    if not isinstance(value, dict):
        return value
    step, rest = path[0], path[1:]
    if step == "*":
        return {name: _without(each, rest) for name, each in value.items()}
    if step in value:
        return {**value, step: _without(value[step], rest)}
    if len(value) == 1:
        return {name: _without(each, path) for name, each in value.items()}
    return value
