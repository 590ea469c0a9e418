"""A function under construction: its lines, the names it uses, the constants it refers to."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Source:
    """The text of one generated function and the values its free names stand for."""

    def __init__(self, header: str) -> None:
        self._lines = [header]
        self._depth = 1
        self._names_given = 0
        self._constants: dict[str, object] = {}
        self._names_by_constant: dict[object, str] = {}

    def line(self, text: str) -> None:
        """Add a line at the present depth."""
        self._lines.append(" " * self._depth + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Put the lines that follow inside `header`."""
        self.line(header)
        self._depth += 1
        yield
        self._depth -= 1

    def name(self, prefix: str) -> str:
        """Return a local name that was not given before."""
        self._names_given += 1
        return f"{prefix}{self._names_given}"

    def constant(self, key: object, value: object) -> str:
        """Return the name for a value; the same key always gets the same name."""
        if key not in self._names_by_constant:
            name = f"C{len(self._constants)}"
            self._names_by_constant[key] = name
            self._constants[name] = value
        return self._names_by_constant[key]

    def text(self) -> str:
        """Return what is written so far."""
        return "\n".join(self._lines)

    def compile(self, function_name: str, file_name: str) -> Any:
        """Return the function. Tracebacks name it by `file_name`."""
        namespace = dict(self._constants)
        exec(compile(self.text(), f"<{file_name}>", "exec"), namespace)
        return namespace[function_name]
