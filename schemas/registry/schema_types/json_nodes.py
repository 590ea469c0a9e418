"""JSON Schema as a graph of nodes, the form in which two schemas are compared.

Every keyword belongs to one kind of node. A schema with keywords of several kinds becomes an
`allOf` with a node for each kind, and a list of types becomes an `anyOf`. `$ref` points to the node
of its target, so a recursive schema is a cycle. Drafts 4 to 7 and 2019-09 to 2020-12 have the same
nodes (json-schema.org, "Understanding JSON Schema").
"""

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, eq=False)
class Node:
    """A schema of any kind; nodes are compared by identity."""

    key: str = ""
    """The same for schemas with the same text."""
    annotations: dict[str, Any] = field(default_factory=dict)
    """The values of `$id`, `title`, `description`, `default` and `connect.type`, if present."""

    @property
    def has_default(self) -> bool:
        return "default" in self.annotations


@dataclass(slots=True, eq=False)
class Everything(Node):
    """Accepts every value."""


@dataclass(slots=True, eq=False)
class TrueSchema(Everything):
    """The literal `true`."""


@dataclass(slots=True, eq=False)
class FalseSchema(Node):
    """Accepts nothing."""


@dataclass(slots=True, eq=False)
class BooleanType(Node):
    """Accepts true and false."""


@dataclass(slots=True, eq=False)
class NullType(Node):
    """Accepts null."""


@dataclass(slots=True, eq=False)
class Conditional(Node):
    """`if`, `then`, `else`, which are not compared."""


@dataclass(slots=True, eq=False)
class StringType(Node):
    """A string. `limits` has minLength, maxLength and pattern."""

    limits: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class NumberType(Node):
    """A number. `limits` has minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf."""

    is_integer: bool = False
    limits: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class ArrayType(Node):
    """An array. `items` are the schemas of single positions, `all_items` is that of all others."""

    limits: dict[str, Any] = field(default_factory=dict)
    """minItems, maxItems, minContains and maxContains."""
    is_unique: bool = False
    all_items: Node | None = None
    items: list[Node] = field(default_factory=list)
    allows_additional: bool = True
    additional: Node | None = None
    unevaluated: Node | None = None


@dataclass(slots=True, eq=False)
class ObjectType(Node):
    """An object. `additional` is the schema of properties that no other keyword describes."""

    limits: dict[str, Any] = field(default_factory=dict)
    """minProperties and maxProperties."""
    properties: dict[str, Node] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    patterns: dict[str, Node] = field(default_factory=dict)
    needed_properties: dict[str, frozenset[str]] = field(default_factory=dict)
    """The properties that each property requires."""
    needed_schemas: dict[str, Node] = field(default_factory=dict)
    allows_additional: bool = True
    additional: Node | None = None
    unevaluated: Node | None = None


@dataclass(slots=True, eq=False)
class Enumeration(Node):
    """Accepts one of `values`; each is JSON with sorted names."""

    values: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False)
class Constant(Node):
    """Accepts exactly one value, which is JSON with sorted names."""

    value: str = ""


@dataclass(slots=True, eq=False)
class Negation(Node):
    """Accepts the values that `inner` does not accept."""

    inner: Node = field(default_factory=Node)


@dataclass(slots=True, eq=False)
class Combined(Node):
    """A combination of schemas; `criterion` is allOf, anyOf or oneOf."""

    criterion: str = "allOf"
    parts: list[Node] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Reference(Node):
    """A reference to `target`, which is set after the whole document is read."""

    target: Node | None = None


def resolved(node: Node) -> Node:
    """Return the target of a reference. Raise ValueError for a reference to itself."""
    seen = {id(node)}
    while isinstance(node, Reference):
        assert node.target is not None, node.key
        node = node.target
        if id(node) in seen:
            raise ValueError(f"the reference '{node.key}' leads to itself")
        seen.add(id(node))
    return node
