"""JSON Schema: the differences between two schemas of objects.

The content model says what happens to properties that a schema does not name: an *open* one allows
all of them, a *closed* one none, a *partially open* one those that fit a schema of their own.
"""

import re

import re2

from schemas.registry.schema_types.json_difference import (
    Compare,
    Difference,
    Differences,
    at,
    limits,
)
from schemas.registry.schema_types.json_nodes import Everything, FalseSchema, Node, ObjectType


def object_differences(compare: Compare, old: ObjectType, new: ObjectType) -> Differences:
    return [
        *_required(old, new),
        *_properties(compare, old, new),
        *_dependencies(compare, old, new),
        *_additional(compare, old, new),
        *unevaluated_differences(compare, old.unevaluated, new.unevaluated, "Properties"),
        *limits(old.limits, new.limits, "maxProperties", "minProperties"),
    ]


def _required(old: ObjectType, new: ObjectType) -> Differences:
    found = []
    for name in old.properties:
        if name not in new.properties:
            continue
        path = f"#/required/{name}"
        if name in old.required and name not in new.required:
            found.append(Difference("REQUIRED_ATTRIBUTE_REMOVED", path))
        elif name in new.required and name not in old.required:
            has_default = new.properties[name].has_default
            added = "WITH_DEFAULT_ADDED" if has_default else "ADDED"
            found.append(Difference(f"REQUIRED_ATTRIBUTE_{added}", path))
    return found


def _properties(compare: Compare, old: ObjectType, new: ObjectType) -> Differences:
    found = []
    for name in sorted(old.properties.keys() | new.properties.keys()):
        if name not in new.properties:
            each = _removed(compare, new, name, old.properties[name])
        elif name not in old.properties:
            each = _added(compare, old, new, name)
        else:
            each = compare(old.properties[name], new.properties[name])
        found += [one._replace(path=at(f"#/properties/{name}", one.path)) for one in each]
    return found


def _removed(compare: Compare, new: ObjectType, name: str, was: Node) -> Differences:
    if is_open(new.allows_additional, new.additional, new.unevaluated) and not new.patterns:
        return [Difference("PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL", "#/")]
    cover = _cover(new, name)
    if cover is not None:
        found = compare(was, cover)
        how = "IS" if compare.fits(found) else "NOT"
        return [
            *found,
            Difference(f"PROPERTY_REMOVED_{how}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", "#/"),
        ]
    removed = "WITH_FALSE_REMOVED" if isinstance(was, FalseSchema) else "REMOVED"
    return [Difference(f"PROPERTY_{removed}_FROM_CLOSED_CONTENT_MODEL", "#/")]


def _added(compare: Compare, old: ObjectType, new: ObjectType, name: str) -> Differences:
    added = new.properties[name]
    if is_open(old.allows_additional, old.additional, old.unevaluated) and not old.patterns:
        if isinstance(added, Everything):
            how = "PROPERTY_WITH_EMPTY_SCHEMA_ADDED"
        else:
            how = _how_added(new, name)
        return [Difference(f"{how}_TO_OPEN_CONTENT_MODEL", "#/")]
    found = []
    cover = _cover(old, name)
    if cover is not None:
        found += compare(cover, added)
        is_covered = "IS" if compare.fits(found) else "NOT"
        found.append(
            Difference(f"PROPERTY_ADDED_{is_covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", "#/")
        )
    return [*found, Difference(f"{_how_added(new, name)}_TO_UNOPEN_CONTENT_MODEL", "#/")]


def _how_added(new: ObjectType, name: str) -> str:
    if name not in new.required:
        return "OPTIONAL_PROPERTY_ADDED"
    has_default = new.properties[name].has_default
    return f"REQUIRED_PROPERTY_{'WITH_DEFAULT_' if has_default else ''}ADDED"


def is_open(allows_additional: bool, additional: Node | None, unevaluated: Node | None) -> bool:
    """Return whether a content model allows all properties that it does not name."""
    if not allows_additional or additional is not None:
        return False
    return unevaluated is None or isinstance(unevaluated, Everything)


def partial_cover(
    allows_additional: bool, additional: Node | None, unevaluated: Node | None
) -> Node | None:
    """Return the schema of properties without a name; None for an open or closed content model."""
    if additional is not None:
        return additional
    if allows_additional and not isinstance(unevaluated, FalseSchema | Everything):
        return unevaluated
    return None


def _cover(schema: ObjectType, name: str) -> Node | None:
    for pattern, covering in schema.patterns.items():
        if _finds(pattern, name):
            return covering
    return partial_cover(schema.allows_additional, schema.additional, schema.unevaluated)


def _finds(pattern: str, name: str) -> bool:
    """Search in linear time if the pattern allows it; the process limits the time of others."""
    try:
        return re2.search(pattern, name) is not None
    except re2.error:
        pass  # The pattern has a look-ahead or look-behind, which `re2` lacks.
    try:
        return re.search(pattern, name) is not None
    except re.error as error:
        raise ValueError(f"the pattern '{pattern}' cannot be used: {error}") from error


def _additional(compare: Compare, old: ObjectType, new: ObjectType) -> Differences:
    path = "#/additionalProperties"
    if old.allows_additional != new.allows_additional:
        how = "ADDED" if new.allows_additional else "REMOVED"
        return [Difference(f"ADDITIONAL_PROPERTIES_{how}", path)]
    if (old.additional is None) != (new.additional is None):
        how = "NARROWED" if old.additional is None else "EXTENDED"
        return [Difference(f"ADDITIONAL_PROPERTIES_{how}", path)]
    found = compare(old.additional, new.additional)
    return [each._replace(path=at(path, each.path)) for each in found]


def unevaluated_differences(
    compare: Compare, old: Node | None, new: Node | None, what: str
) -> Differences:
    """Compare `unevaluatedProperties` or `unevaluatedItems`."""
    if old is None and new is None:
        return []
    path = f"#/unevaluated{what}"
    how = _unevaluated(old, new)
    if how:
        return [Difference(f"UNEVALUATED_{what.upper()}_{how}", path)]
    return [each._replace(path=at(path, each.path)) for each in compare(old, new)]


def _unevaluated(old: Node | None, new: Node | None) -> str:
    """Return how one content model differs from another; empty if their schemas decide."""
    was_closed, is_closed = isinstance(old, FalseSchema), isinstance(new, FalseSchema)
    if was_closed != is_closed:
        return "ADDED" if was_closed else "REMOVED"
    if old is None or new is None:
        return "NARROWED" if old is None else "EXTENDED"
    if isinstance(old, Everything) != isinstance(new, Everything):
        return "NARROWED" if isinstance(old, Everything) else "EXTENDED"
    return ""


def _dependencies(compare: Compare, old: ObjectType, new: ObjectType) -> Differences:
    found = []
    for name in sorted(old.needed_properties.keys() | new.needed_properties.keys()):
        how = _how_needed(old.needed_properties.get(name), new.needed_properties.get(name))
        if how:
            found.append(Difference(f"DEPENDENCY_ARRAY_{how}", f"#/dependencies/{name}"))
    for name in sorted(old.needed_schemas.keys() | new.needed_schemas.keys()):
        before, after = old.needed_schemas.get(name), new.needed_schemas.get(name)
        path = f"#/dependencies/{name}"
        if before is None or after is None:
            how = "ADDED" if before is None else "REMOVED"
            found.append(Difference(f"DEPENDENCY_SCHEMA_{how}", path))
        else:
            found += [each._replace(path=at(path, each.path)) for each in compare(before, after)]
    return found


def _how_needed(old: frozenset[str] | None, new: frozenset[str] | None) -> str:
    if new is None or old is None:
        return "REMOVED" if new is None else "ADDED"
    if old == new:
        return ""
    if old < new:
        return "EXTENDED"
    return "NARROWED" if new < old else "CHANGED"
