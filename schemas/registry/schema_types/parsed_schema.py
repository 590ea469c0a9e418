"""What a parsed schema of any type can do, and the limits of what is parsed."""

from typing import Any, Protocol

from schemas.registry.questions import Named
from schemas.registry.refusals import RegistryError, invalid_schema

_DEPTH_LIMIT = 200
_MEMBERS_LIMIT = 50_000


class ParsedSchema(Protocol):
    """A valid schema."""

    named: Named
    """The texts of its references: a schema of the same text is another one with others."""

    @property
    def canonical(self) -> str:
        """The stored text, which is the same for schemas that differ only in spelling."""

    def normalized(self) -> str:
        """Return the text for `normalize=true`, which ignores the order of attributes."""

    def formatted(self, how: str) -> str:
        """Return the text in another format. Raise RegistryError for an unknown format."""

    def cannot_read(self, written: "ParsedSchema", *, is_lenient: bool = False) -> list[str]:
        """Return why this schema cannot read data of another one; empty if it can.

        The sentences contain `%s` twice: for the reader and for the writer. Only JSON Schema has a
        lenient policy.
        """


def check_shape(document: Any, *, members: int = _MEMBERS_LIMIT) -> None:
    """Raise ValueError for a document with too many levels, or too many members in one object.

    The code that reads it later, here and in clients, is recursive, and some of it is quadratic.
    """
    level: list[Any] = [document]
    for _ in range(_DEPTH_LIMIT):
        inner: list[Any] = []
        for each in level:
            if isinstance(each, dict | list):
                if len(each) > members:
                    raise ValueError(f"more than {members} members in one place")
                inner += each.values() if isinstance(each, dict) else each
        if not inner:
            return
        level = inner
    raise ValueError(f"nested more than {_DEPTH_LIMIT} levels deep")


def unknown_format(how: str, schema_type: str) -> RegistryError:
    return invalid_schema(f"Unsupported format '{how}' for a schema of type {schema_type}")
