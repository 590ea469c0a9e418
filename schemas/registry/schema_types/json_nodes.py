"""JSON Schema as a graph of nodes: the form in which two schemas are compared.

A document becomes a graph: every keyword belongs to one kind of node, a schema with keywords of
several kinds is an `allOf` of one node for each, a list of types is an `anyOf`, and `$ref` leads to
the node of its target, so that a recursive schema is a cycle. Drafts 4 to 7 and 2019-09 to 2020-12
give the same nodes (json-schema.org, "Understanding JSON Schema").
"""

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, eq=False)
class Node:
    """A schema of any kind; nodes are compared by identity."""

    key: str = ""
    """Equal for schemas that are written the same."""
    annotations: dict[str, Any] = field(default_factory=dict)
    """`$id`, `title`, `description`, `default` and `connect.type`, where they are given."""

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
    """`if`, `then`, `else`: not compared."""


@dataclass(slots=True, eq=False)
class StringType(Node):
    """`limits` holds minLength, maxLength and pattern."""

    limits: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class NumberType(Node):
    """`limits` holds minimum, maximum, exclusiveMinimum, exclusiveMaximum and multipleOf."""

    is_integer: bool = False
    limits: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class ArrayType(Node):
    """`items` are the schemas of single places, `all_items` is the one of all."""

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
    """`additional` is the schema of properties that have none of their own."""

    limits: dict[str, Any] = field(default_factory=dict)
    """minProperties and maxProperties."""
    properties: dict[str, Node] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    patterns: dict[str, Node] = field(default_factory=dict)
    needed_properties: dict[str, frozenset[str]] = field(default_factory=dict)
    """By property: the others that must be there with it."""
    needed_schemas: dict[str, Node] = field(default_factory=dict)
    allows_additional: bool = True
    additional: Node | None = None
    unevaluated: Node | None = None


@dataclass(slots=True, eq=False)
class Enumeration(Node):
    """One of `values`, each as JSON with sorted names."""

    values: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False)
class Constant(Node):
    """Exactly one value, as JSON with sorted names."""

    value: str = ""


@dataclass(slots=True, eq=False)
class Negation(Node):
    """Accepts what `inner` does not."""

    inner: Node = field(default_factory=Node)


@dataclass(slots=True, eq=False)
class Combined(Node):
    """`criterion` is allOf, anyOf or oneOf."""

    criterion: str = "allOf"
    parts: list[Node] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Reference(Node):
    """Stands for `target`, which is set when all of the document is read."""

    target: Node | None = None


def resolved(node: Node) -> Node:
    """Return the schema that a reference means. Raises ValueError for one that means itself."""
    seen = {id(node)}
    while isinstance(node, Reference):
        assert node.target is not None, node.key
        node = node.target
        if id(node) in seen:
            raise ValueError(f"the reference '{node.key}' leads to itself")
        seen.add(id(node))
    return node
