"""The path to a field: one name, or the names from the root to it (KIP-821).

Version 2 of the syntax (`field.syntax.version`) separates names by dots. A name that contains a
dot stands between backticks; a backtick before a dot inside of that name is escaped by a backslash.
"""

from typing import Any

from connect.transforms.parts import required_map, required_struct
from millstream.connect import ConfigDef, ConfigException, Field, Importance, Schema, Struct
from millstream.connect.config.types import Type
from millstream.connect.config.validators import CaseInsensitiveValidString

SYNTAX_VERSION = "field.syntax.version"
_PURPOSE = "nested field access"


def with_syntax_setting(config: ConfigDef) -> ConfigDef:
    """Add the setting `field.syntax.version` to a definition of settings."""
    return config.define(
        SYNTAX_VERSION,
        Type.STRING,
        Importance.HIGH,
        "The names of fields. V1: by name, at the root alone. V2: nested ones too, with dots "
        "between names; a name that holds a dot stands between backticks: `foo.bar`.baz.",
        default="V1",
        validator=CaseInsensitiveValidString("V1", "V2"),
    )


class FieldPath:
    """The names from the root to a field. Invariant: there is at least one."""

    def __init__(self, path: str, version: str = "V1") -> None:
        self.steps = [path] if version.upper() == "V1" or not path else steps_of(path)

    def field_in(self, schema: Schema) -> Field | None:
        """Return the field in a struct's schema; None if there is none."""
        field: Field | None = None
        for step in self.steps:
            field = (schema if field is None else field.schema).field(step)
            if field is None:
                return None
        return field

    def value_in_struct(self, struct: Struct, *, with_default: bool) -> Any:
        """Return the field's value in a struct; None if it or a parent is missing."""
        current = struct
        for step in self.steps[:-1]:
            if current.schema.field(step) is None or current[step] is None:
                return None
            current = required_struct(current[step], _PURPOSE)
        last = self.steps[-1]
        if current.schema.field(last) is None:
            return None
        return current[last] if with_default else current.without_default(last)

    def value_in_map(self, value: dict[str, Any]) -> Any:
        """Return the field's value in a map; None if it or a parent is missing."""
        for step in self.steps[:-1]:
            inner = value.get(step)
            if inner is None:
                return None
            value = required_map(inner, _PURPOSE)
        return value.get(self.steps[-1])


def steps_of(path: str) -> list[str]:
    """Split a path of version 2; raise ConfigException if a closing backtick is missing."""
    steps: list[str] = []
    place = 0
    while place < len(path):
        if path[place] == "`":
            step, place = _quoted_step(path, place)
        else:
            end = path.find(".", place)
            end = len(path) if end < 0 else end
            step, place = path[place:end], end + 1
        steps.append(step)
    if path.endswith("."):
        steps.append("")
    return steps


def _quoted_step(path: str, begin: int) -> tuple[str, int]:
    """Return the name between backticks and the position of the next name."""
    name: list[str] = []
    start = place = begin + 1
    while True:
        place = path.find("`", place)
        is_escaped = place > 0 and path[place - 1] == "\\"
        is_last = place == len(path) - 1
        if place < 0 or (is_last and is_escaped):
            raise ConfigException(
                f"Incomplete backtick pair in path: [{path}], consider adding a backslash before "
                f"backtick at position {begin} to escape it"
            )
        if is_last:
            return "".join((*name, path[start:place])), place + 1
        # A backtick that no dot follows is part of the name.
        if path[place + 1] == ".":
            if not is_escaped:
                return "".join((*name, path[start:place])), place + 2
            name += (path[start : place - 1], "`")
            start = place + 1
        place += 1
