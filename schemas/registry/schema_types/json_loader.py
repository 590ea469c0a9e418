"""Read a JSON Schema document into nodes (see `json_nodes`).

A reference may lead into the same document or to a schema that the request names. A reference to
any other place is refused; no document is fetched.
"""

from collections.abc import Mapping
from typing import Any, Final

from jsonschema_specifications import REGISTRY as META_SCHEMAS
from referencing import Specification
from referencing.exceptions import Unresolvable
from referencing.jsonschema import (
    DRAFT4,
    DRAFT7,
    DRAFT201909,
    DRAFT202012,
    specification_with,
)

from common.registry.json_schema import json_key
from schemas.registry.schema_types.json_nodes import (
    ArrayType,
    BooleanType,
    Combined,
    Conditional,
    Constant,
    Enumeration,
    Everything,
    FalseSchema,
    Negation,
    Node,
    NullType,
    NumberType,
    ObjectType,
    Reference,
    StringType,
    TrueSchema,
)

_ROOT: Final = "mem://input"
_MODERN: Final = (DRAFT201909, DRAFT202012)
_NUMBER: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_STRING: Final = ("minLength", "maxLength", "pattern")
_ARRAY: Final = ("items", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains")
_OBJECT: Final = (
    *("properties", "required", "minProperties", "maxProperties", "dependencies"),
    *("patternProperties", "additionalProperties", "propertyNames"),
)
_MODERN_ARRAY: Final = (*_ARRAY, "prefixItems", "unevaluatedItems")
_MODERN_OBJECT: Final = (
    *_OBJECT,
    *("dependentRequired", "dependentSchemas", "unevaluatedProperties"),
)
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_ANNOTATIONS: Final = ("title", "description", "default", "connect.type")
_Json = Mapping[str, Any]


def load(document: Any, named: Mapping[str, Any]) -> Node:
    """Read a document; `named` has the referenced documents by the names used in references.

    Raise ValueError for a reference that cannot be resolved.
    """
    specification = _specification(document, DRAFT7)
    registry = META_SCHEMAS
    for name, text in named.items():
        resource = _specification(text, specification).create_resource(_bridged(text))
        for address in (name, f"./{name}", f"{_ROOT}/{name}"):
            registry = registry.with_resource(address, resource)
    root = _bridged(document)
    resource = specification.create_resource(root)
    resolver = registry.with_resource(_ROOT, resource).resolver_with_root(resource)
    return _Loader(specification).load(root, resolver)


def _specification(document: Any, default: Specification[Any]) -> Specification[Any]:
    dialect = document.get("$schema") if isinstance(document, dict) else None
    return specification_with(dialect, default=default) if isinstance(dialect, str) else default


def _bridged(document: Any) -> Any:
    """Resolve `#/$defs/X` also to a schema in `definitions`, as Confluent's registry does."""
    if not isinstance(document, dict):
        return document
    old, new = document.get("definitions"), document.get("$defs", {})
    if not isinstance(old, dict) or not isinstance(new, dict):
        return document
    return {**document, "$defs": {**old, **new}}


class _Loader:
    """Reads one document and the schemas that it refers to."""

    def __init__(self, specification: Specification[Any]) -> None:
        self._is_modern = specification in _MODERN
        self._is_extending = specification == DRAFT4
        self._id = "id" if specification == DRAFT4 else "$id"
        self._specification = specification
        self._known: dict[int, Node] = {}
        """The nodes by the `id` of their JSON object, which exists as long as the loader."""
        self._pending: list[tuple[Reference, Any]] = []

    def load(self, schema: Any, resolver: Any) -> Node:
        root = self._node(schema, resolver)
        while self._pending:
            reference, at = self._pending.pop()
            try:
                found = at.lookup(reference.key)
            # Besides its own errors the package raises others for an invalid address.
            except (Unresolvable, ValueError, LookupError, TypeError, AttributeError) as error:
                raise ValueError(f"unresolved $ref '{reference.key}'") from error
            reference.target = self._node(found.contents, found.resolver)
        return root

    def _node(self, schema: Any, resolver: Any) -> Node:
        if isinstance(schema, bool):
            return TrueSchema(key="true") if schema else FalseSchema(key="false")
        if not isinstance(schema, dict):
            raise ValueError("a schema is an object, true or false")
        known = self._known.get(id(schema))
        if known is None:
            known = self._known[id(schema)] = self._read(schema, resolver)
        return known

    def _read(self, schema: _Json, resolver: Any) -> Node:
        if isinstance(schema.get(self._id), str):
            resource = self._specification.create_resource(schema)
            resolver = resolver.in_subresource(resource)
        parts = self._parts(schema, resolver)
        if not parts:
            node: Node = Everything()
        elif len(parts) == 1:
            node = parts[0]
        else:
            for number, part in enumerate(parts):
                part.key = part.key or str(number)
            node = Combined(criterion="allOf", parts=parts)
        node.annotations = {
            name: schema[name] for name in (self._id, *_ANNOTATIONS) if name in schema
        }
        return node

    def _parts(self, schema: _Json, resolver: Any) -> list[Node]:
        """Return a node for each kind of keyword."""
        references: list[Node] = [
            self._reference(schema[name], resolver)
            for name in (_REFERENCES if self._is_modern else _REFERENCES[:1])
            if isinstance(schema.get(name), str)
        ]
        if references and not (self._is_modern or self._is_extending):
            return references
        parts = [*references]
        if "enum" in schema:
            parts.append(Enumeration(values=frozenset(map(json_key, schema["enum"]))))
        parts += [
            self._combined(criterion, schema[criterion], resolver)
            for criterion in ("allOf", "oneOf", "anyOf")
            if criterion in schema
        ]
        if "not" in schema:
            parts.append(Negation(inner=self._node(schema["not"], resolver)))
        if "const" in schema:
            parts.append(Constant(value=json_key(schema["const"])))
        parts += self._typed(schema, resolver)
        parts += self._untyped(schema, resolver, _kinds(schema.get("type")))
        if any(name in schema for name in ("if", "then", "else")):
            parts.append(Conditional())
        return parts

    def _reference(self, target: str, resolver: Any) -> Reference:
        reference = Reference(key=target)
        self._pending.append((reference, resolver))
        return reference

    def _combined(self, criterion: str, schemas: list[Any], resolver: Any) -> Combined:
        parts = {json_key(each): self._node(each, resolver) for each in schemas}
        for key, part in parts.items():
            part.key = key
        return Combined(criterion=criterion, parts=list(parts.values()))

    def _typed(self, schema: _Json, resolver: Any) -> list[Node]:
        kind = schema.get("type")
        if isinstance(kind, str):
            return [self._of_type(kind, schema, resolver)]
        if isinstance(kind, list):
            parts = {each: self._of_type(each, schema, resolver) for each in kind}
            for name, part in parts.items():
                part.key = name
            return [Combined(criterion="anyOf", parts=list(parts.values()))]
        return []

    def _of_type(self, kind: str, schema: _Json, resolver: Any) -> Node:
        match kind:
            case "string":
                return StringType(limits=_chosen(schema, _STRING))
            case "integer" | "number":
                return NumberType(is_integer=kind == "integer", limits=_number_limits(schema))
            case "array":
                return self._array(schema, resolver)
            case "object":
                return self._object(schema, resolver)
            case "boolean":
                return BooleanType()
            case "null":
                return NullType()
            case _:
                raise ValueError(f"unknown type: {kind}")

    def _untyped(self, schema: _Json, resolver: Any, typed: frozenset[str]) -> list[Node]:
        """Return a node for each kind that has keywords but is not named in `type`."""
        names = {
            "array": _MODERN_ARRAY if self._is_modern else _ARRAY,
            "object": _MODERN_OBJECT if self._is_modern else _OBJECT,
            "number": _NUMBER,
            "string": _STRING if self._is_modern else (*_STRING, "format"),
        }
        return [
            self._of_type(kind, schema, resolver)
            for kind, keywords in names.items()
            if kind not in typed and any(self._counts(schema, name) for name in keywords)
        ]

    def _counts(self, schema: _Json, name: str) -> bool:
        """Return whether a keyword counts; an empty `properties` does not in the later drafts."""
        return name in schema and not (
            self._is_modern and name == "properties" and not schema[name]
        )

    def _array(self, schema: _Json, resolver: Any) -> ArrayType:
        node = ArrayType(
            limits=_chosen(schema, ("minItems", "maxItems")),
            is_unique=schema.get("uniqueItems", False) is True,
        )
        if self._is_modern:
            self._read_modern_items(node, schema, resolver)
        else:
            self._read_items(node, schema, resolver)
        return node

    def _read_items(self, node: ArrayType, schema: _Json, resolver: Any) -> None:
        node.limits |= {
            # Drafts that lack these keywords do not check their types.
            name: number
            for name, number in _chosen(schema, ("minContains", "maxContains")).items()
            if isinstance(number, int | float)
        }
        items, additional = schema.get("items"), schema.get("additionalItems", True)
        if isinstance(items, list):
            node.items = [self._node(each, resolver) for each in items]
        elif items is not None:
            node.all_items = self._node(items, resolver)
        if isinstance(additional, bool):
            node.allows_additional = additional
        else:
            node.additional = self._node(additional, resolver)

    def _read_modern_items(self, node: ArrayType, schema: _Json, resolver: Any) -> None:
        if "contains" in schema:
            node.limits |= {"minContains": 1} | _chosen(schema, ("minContains", "maxContains"))
        node.items = [self._node(each, resolver) for each in schema.get("prefixItems", ())]
        items = schema.get("items", True)
        if isinstance(items, bool):
            node.allows_additional = items
        elif node.items:
            node.additional = self._node(items, resolver)
        else:
            node.all_items = self._node(items, resolver)
        if "unevaluatedItems" in schema:
            node.unevaluated = self._node(schema["unevaluatedItems"], resolver)

    def _object(self, schema: _Json, resolver: Any) -> ObjectType:
        node = ObjectType(
            limits=_chosen(schema, ("minProperties", "maxProperties")),
            properties=self._nodes(schema.get("properties", {}), resolver),
            required=_names(schema.get("required", ())),
            patterns=self._nodes(schema.get("patternProperties", {}), resolver),
        )
        additional = schema.get("additionalProperties", True)
        if isinstance(additional, bool):
            node.allows_additional = additional
        else:
            node.additional = self._node(additional, resolver)
        if self._is_modern:
            needed = schema.get("dependentRequired", {})
            node.needed_properties = {name: _names(each) for name, each in needed.items()}
            node.needed_schemas = self._nodes(schema.get("dependentSchemas", {}), resolver)
            if "unevaluatedProperties" in schema:
                node.unevaluated = self._node(schema["unevaluatedProperties"], resolver)
        else:
            self._read_dependencies(node, schema.get("dependencies", {}), resolver)
        return node

    def _read_dependencies(self, node: ObjectType, needed: _Json, resolver: Any) -> None:
        for name, each in needed.items():
            if isinstance(each, list):
                node.needed_properties[name] = _names(each)
            else:
                node.needed_schemas[name] = self._node(each, resolver)

    def _nodes(self, schemas: _Json, resolver: Any) -> dict[str, Node]:
        return {name: self._node(each, resolver) for name, each in schemas.items()}


def _kinds(kind: Any) -> frozenset[str]:
    kinds = {kind} if isinstance(kind, str) else set(kind or ())
    return frozenset(kinds | ({"number"} if "integer" in kinds else set()))


def _names(names: Any) -> frozenset[str]:
    return frozenset(str(name) for name in names) if isinstance(names, list) else frozenset()


def _chosen(schema: _Json, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: schema[name] for name in names if name in schema}


def _number_limits(schema: _Json) -> dict[str, Any]:
    """Return the limits of a number; in draft 4 `exclusiveMaximum` is a flag of `maximum`."""
    limits = _chosen(schema, _NUMBER)
    for exclusive, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if limits.get(exclusive) is True and plain in limits:
            limits[exclusive] = limits.pop(plain)
        elif isinstance(limits.get(exclusive), bool):
            del limits[exclusive]
    return limits
