"""Find the differences between two JSON Schemas by Confluent's rules.

`differences(old, new)` finds data of the old schema that the new one does not accept. Each pair of
schemas is compared once. In a recursive schema a pair may occur inside of its own comparison; it is
then assumed to be compatible. If an assumption was wrong, the comparison is repeated with the known
incompatible pairs, until no more pairs are found.
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from schemas.registry.schema_types.json_array_rules import array_differences
from schemas.registry.schema_types.json_difference import (
    Compare,
    Difference,
    Differences,
    at,
    fits,
    limits,
)
from schemas.registry.schema_types.json_nodes import (
    ArrayType,
    Combined,
    Constant,
    Enumeration,
    Everything,
    FalseSchema,
    Negation,
    Node,
    NumberType,
    ObjectType,
    StringType,
    resolved,
)
from schemas.registry.schema_types.json_object_rules import object_differences
from schemas.registry.schema_types.matching import largest_matching

_Pair = tuple[int, int]


def differences(old: Node, new: Node, *, is_lenient: bool = False) -> Differences:
    """Return all differences, also compatible ones. Raise ValueError for a circular `$ref`."""
    known: dict[_Pair, Differences] = {}
    while True:
        comparison = _Comparison(known, is_lenient=is_lenient)
        found = comparison(old, new)
        incompatible = comparison.incompatible()
        if not comparison.has_assumed or incompatible.keys() == known.keys():
            return found
        known = incompatible


class _Comparison:
    """One pass over two graphs of nodes."""

    def __init__(self, incompatible: dict[_Pair, Differences], *, is_lenient: bool) -> None:
        self._is_lenient = is_lenient
        self.has_assumed = False
        self._incompatible = incompatible
        """The pairs that an earlier pass found incompatible."""
        self._done: dict[_Pair, Differences] = {}
        self._under_way: set[_Pair] = set()

    def incompatible(self) -> dict[_Pair, Differences]:
        return {pair: found for pair, found in self._done.items() if not self.fits(found)}

    def fits(self, found: Iterable[Difference]) -> bool:
        return fits(found, is_lenient=self._is_lenient)

    def __call__(self, old: Node | None, new: Node | None) -> Differences:
        """Return the differences, with paths relative to the two schemas."""
        if old is None or new is None:
            if old is new:
                return []
            return [Difference("SCHEMA_ADDED" if old is None else "SCHEMA_REMOVED", "#/")]
        old, new = resolved(old), resolved(new)
        pair = (id(old), id(new))
        if pair in self._done:
            return self._done[pair]
        if pair in self._under_way:
            known = self._incompatible.get(pair)
            self.has_assumed |= known is None
            return known or []
        self._under_way.add(pair)
        found = self._done[pair] = _compared(self, old, new)
        self._under_way.remove(pair)
        return found


def _compared(compare: Compare, old: Node, new: Node) -> Differences:
    through = _through_combination(compare, old, new)
    if through is not None:
        return through
    if type(old) is not type(new):
        if isinstance(old, FalseSchema) or isinstance(new, Everything):
            return []
        both = (old.annotations.get("connect.type"), new.annotations.get("connect.type"))
        return [] if both == ("bytes", "bytes") else [Difference("TYPE_CHANGED", "#/")]
    return [*_annotations(old, new), *_by_kind(compare, old, new)]


def _through_combination(compare: Compare, old: Node, new: Node) -> Differences | None:
    """Compare a schema with the parts of a combination; None unless one of them fits."""
    if isinstance(new, Combined) and not isinstance(old, Combined):
        parts, may_choose, name = new.parts, new.criterion != "allOf", "SUM_TYPE_EXTENDED"
    elif isinstance(old, Combined) and not isinstance(new, Combined):
        parts, may_choose, name = old.parts, old.criterion == "allOf", "PRODUCT_TYPE_NARROWED"
    else:
        return None
    if len(parts) != 1 and not may_choose:
        return None
    for part in parts:
        found = compare(old, part) if isinstance(new, Combined) else compare(part, new)
        if compare.fits(found):
            return found if len(parts) == 1 else [*found, Difference(name, "#/")]
    return None


def _annotations(old: Node, new: Node) -> Differences:
    def given(node: Node, *names: str) -> Any:
        return next((node.annotations[name] for name in names if name in node.annotations), None)

    names = {
        "ID_CHANGED": ("$id", "id"),
        "TITLE_CHANGED": ("title",),
        "DESCRIPTION_CHANGED": ("description",),
        "DEFAULT_CHANGED": ("default",),
    }
    return [
        Difference(name, "#/")
        for name, keywords in names.items()
        if given(old, *keywords) != given(new, *keywords)
    ]


def _by_kind(compare: Compare, old: Node, new: Node) -> Differences:
    found: Differences = []
    match old, new:
        case StringType(), StringType():
            found = [*limits(old.limits, new.limits, "maxLength", "minLength"), *_pattern(old, new)]
        case NumberType(), NumberType():
            found = _number(old, new)
        case Constant(), Constant() if old.value != new.value:
            found = [Difference("ENUM_ARRAY_CHANGED", "#/const")]
        case Enumeration(), Enumeration():
            found = _enumeration(old, new)
        case Combined(), Combined():
            found = _combined(compare, old, new)
        case Negation(), Negation():
            # A negation reverses the roles of the two schemas.
            is_narrower = compare.fits(compare(new.inner, old.inner))
            how = "NARROWED" if is_narrower else "EXTENDED"
            found = [Difference(f"NOT_TYPE_{how}", "#/not")]
        case ObjectType(), ObjectType():
            found = object_differences(compare, old, new)
        case ArrayType(), ArrayType():
            found = array_differences(compare, old, new)
        case _:
            pass
    return found


def _pattern(old: StringType, new: StringType) -> Differences:
    before, after = old.limits.get("pattern"), new.limits.get("pattern")
    if before == after:
        return []
    how = "ADDED" if before is None else "REMOVED" if after is None else "CHANGED"
    return [Difference(f"PATTERN_{how}", "#/pattern")]


def _number(old: NumberType, new: NumberType) -> Differences:
    names = ("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum")
    found = limits(old.limits, new.limits, *names)
    before, after = old.limits.get("multipleOf"), new.limits.get("multipleOf")
    if before != after:
        found.append(Difference(f"MULTIPLE_OF_{_multiples(before, after)}", "#/multipleOf"))
    if old.is_integer != new.is_integer:
        name = "TYPE_EXTENDED" if old.is_integer else "TYPE_NARROWED"
        found.append(Difference(name, "#/"))
    return found


def _multiples(before: float | None, after: float | None) -> str:
    if before is None:
        return "ADDED"
    if after is None:
        return "REMOVED"
    # The decimal text counts, not the float: 0.3 is a multiple of 0.1.
    old, new = Fraction(str(before)), Fraction(str(after))
    if new % old == 0:
        return "EXPANDED"
    return "REDUCED" if old % new == 0 else "CHANGED"


def _enumeration(old: Enumeration, new: Enumeration) -> Differences:
    if old.values == new.values:
        return []
    if old.values < new.values:
        how = "EXTENDED"
    else:
        how = "NARROWED" if new.values < old.values else "CHANGED"
    return [Difference(f"ENUM_ARRAY_{how}", "#/enum")]


def _combined(compare: Compare, old: Combined, new: Combined) -> Differences:
    found = _criteria(old, new)
    if any(each.name == "COMBINED_TYPE_CHANGED" for each in found):
        return found
    if len(old.parts) < len(new.parts):
        is_product = new.criterion == "allOf"
        found.append(
            Difference("PRODUCT_TYPE_EXTENDED" if is_product else "SUM_TYPE_EXTENDED", "#/")
        )
    elif len(old.parts) > len(new.parts):
        is_product = old.criterion == "allOf"
        found.append(
            Difference("PRODUCT_TYPE_NARROWED" if is_product else "SUM_TYPE_NARROWED", "#/")
        )
    fitting: dict[int, dict[int, Differences]] = {}
    for number, part in enumerate(old.parts):
        compared = ((other, compare(part, each)) for other, each in enumerate(new.parts))
        fitting[number] = {other: each for other, each in compared if compare.fits(each)}
    matching = largest_matching({number: list(each) for number, each in fitting.items()})
    for number, other in sorted(matching.items()):
        prefix = f"#/{old.criterion}/{number}"
        found += [each._replace(path=at(prefix, each.path)) for each in fitting[number][other]]
    if len(matching) < min(len(old.parts), len(new.parts)):
        found.append(Difference("COMBINED_TYPE_SUBSCHEMAS_CHANGED", "#/"))
    return found


def _criteria(old: Combined, new: Combined) -> Differences:
    if old.criterion == new.criterion:
        return []
    is_extended = (
        new.criterion == "anyOf"
        or (len(old.parts) == 1 and (len(new.parts) == 1 or new.criterion == "oneOf"))
        or (len(new.parts) == 1 and old.criterion == "allOf")
    )
    return [Difference("COMBINED_TYPE_EXTENDED" if is_extended else "COMBINED_TYPE_CHANGED", "#/")]
