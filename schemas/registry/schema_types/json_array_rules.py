"""JSON Schema: the differences between two schemas of arrays."""

from schemas.registry.schema_types.json_difference import (
    Compare,
    Difference,
    Differences,
    at,
    limits,
)
from schemas.registry.schema_types.json_nodes import ArrayType, Everything, FalseSchema, Node
from schemas.registry.schema_types.json_object_rules import (
    is_open,
    partial_cover,
    unevaluated_differences,
)


def array_differences(compare: Compare, old: ArrayType, new: ArrayType) -> Differences:
    items = compare(old.all_items, new.all_items)
    names = ("maxItems", "minItems")
    unique = []
    if old.is_unique != new.is_unique:
        how = "REMOVED" if old.is_unique else "ADDED"
        unique = [Difference(f"UNIQUE_ITEMS_{how}", "#/uniqueItems")]
    return [
        *(each._replace(path=at("#/items", each.path)) for each in items),
        *_places(compare, old, new),
        *_additional(compare, old, new),
        *unevaluated_differences(compare, old.unevaluated, new.unevaluated, "Items"),
        *limits(old.limits, new.limits, *names),
        *unique,
        *limits(old.limits, new.limits, "maxContains", "minContains"),
    ]


def _places(compare: Compare, old: ArrayType, new: ArrayType) -> Differences:
    """Compare the schemas of single positions."""
    found = []
    for number in range(max(len(old.items), len(new.items))):
        if number >= len(new.items):
            each = _removed(compare, new, old.items[number])
        elif number >= len(old.items):
            each = _added(compare, old, new.items[number])
        else:
            each = compare(old.items[number], new.items[number])
        found += [one._replace(path=at(f"#/items/{number}", one.path)) for one in each]
    return found


def _removed(compare: Compare, new: ArrayType, was: Node) -> Differences:
    if is_open(new.allows_additional, new.additional, new.unevaluated):
        return [Difference("ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL", "#/")]
    cover = partial_cover(new.allows_additional, new.additional, new.unevaluated)
    if cover is not None:
        found = compare(was, cover)
        how = "IS" if compare.fits(found) else "NOT"
        return [
            *found,
            Difference(f"ITEM_REMOVED_{how}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", "#/"),
        ]
    removed = "WITH_FALSE_REMOVED" if isinstance(was, FalseSchema) else "REMOVED"
    return [Difference(f"ITEM_{removed}_FROM_CLOSED_CONTENT_MODEL", "#/")]


def _added(compare: Compare, old: ArrayType, added: Node) -> Differences:
    if is_open(old.allows_additional, old.additional, old.unevaluated):
        how = "WITH_EMPTY_SCHEMA_ADDED" if isinstance(added, Everything) else "ADDED"
        return [Difference(f"ITEM_{how}_TO_OPEN_CONTENT_MODEL", "#/")]
    cover = partial_cover(old.allows_additional, old.additional, old.unevaluated)
    if cover is None:
        return [Difference("ITEM_ADDED_TO_CLOSED_CONTENT_MODEL", "#/")]
    found = compare(cover, added)
    how = "IS" if compare.fits(found) else "NOT"
    return [
        *found,
        Difference(f"ITEM_ADDED_{how}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", "#/"),
    ]


def _additional(compare: Compare, old: ArrayType, new: ArrayType) -> Differences:
    path = "#/additionalItems"
    if old.allows_additional != new.allows_additional:
        how = "REMOVED" if old.allows_additional else "ADDED"
        return [Difference(f"ADDITIONAL_ITEMS_{how}", path)]
    if (old.additional is None) != (new.additional is None):
        how = "NARROWED" if old.additional is None else "EXTENDED"
        return [Difference(f"ADDITIONAL_ITEMS_{how}", path)]
    found = compare(old.additional, new.additional)
    return [each._replace(path=at(path, each.path)) for each in found]
