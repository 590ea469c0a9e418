"""The kinds of differences between two JSON Schemas: names, messages, and which are compatible.

Names, verdicts and messages are those of Confluent's registry, whose clients compare them
(confluentinc/schema-registry, `json-schema-provider`, package `diff`).
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple, Protocol

from schemas.registry.schema_types.json_nodes import Node

_STRICT: Final = frozenset(
    [
        "ID_CHANGED",
        "DESCRIPTION_CHANGED",
        "TITLE_CHANGED",
        "DEFAULT_CHANGED",
        "SCHEMA_REMOVED",
        "TYPE_EXTENDED",
        "MAX_LENGTH_INCREASED",
        "MAX_LENGTH_REMOVED",
        "MIN_LENGTH_DECREASED",
        "MIN_LENGTH_REMOVED",
        "PATTERN_REMOVED",
        "MAXIMUM_INCREASED",
        "MAXIMUM_REMOVED",
        "MINIMUM_DECREASED",
        "MINIMUM_REMOVED",
        "EXCLUSIVE_MAXIMUM_INCREASED",
        "EXCLUSIVE_MAXIMUM_REMOVED",
        "EXCLUSIVE_MINIMUM_DECREASED",
        "EXCLUSIVE_MINIMUM_REMOVED",
        "MULTIPLE_OF_REDUCED",
        "MULTIPLE_OF_REMOVED",
        "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED",
        "REQUIRED_ATTRIBUTE_REMOVED",
        "DEPENDENCY_ARRAY_NARROWED",
        "DEPENDENCY_ARRAY_REMOVED",
        "DEPENDENCY_SCHEMA_REMOVED",
        "MAX_PROPERTIES_INCREASED",
        "MAX_PROPERTIES_REMOVED",
        "MIN_PROPERTIES_DECREASED",
        "MIN_PROPERTIES_REMOVED",
        "ADDITIONAL_PROPERTIES_ADDED",
        "ADDITIONAL_PROPERTIES_EXTENDED",
        "UNEVALUATED_PROPERTIES_ADDED",
        "UNEVALUATED_PROPERTIES_EXTENDED",
        "PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL",
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL",
        "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "MAX_ITEMS_INCREASED",
        "MAX_ITEMS_REMOVED",
        "MIN_ITEMS_DECREASED",
        "MIN_ITEMS_REMOVED",
        "MAX_CONTAINS_INCREASED",
        "MAX_CONTAINS_REMOVED",
        "MIN_CONTAINS_DECREASED",
        "MIN_CONTAINS_REMOVED",
        "UNIQUE_ITEMS_REMOVED",
        "ADDITIONAL_ITEMS_ADDED",
        "ADDITIONAL_ITEMS_EXTENDED",
        "UNEVALUATED_ITEMS_ADDED",
        "UNEVALUATED_ITEMS_EXTENDED",
        "ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL",
        "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL",
        "ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL",
        "ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "ENUM_ARRAY_EXTENDED",
        "COMBINED_TYPE_EXTENDED",
        "PRODUCT_TYPE_NARROWED",
        "SUM_TYPE_EXTENDED",
        "NOT_TYPE_NARROWED",
    ]
)
_LENIENT: Final = _STRICT | {
    "ADDITIONAL_PROPERTIES_NARROWED",
    "ADDITIONAL_PROPERTIES_REMOVED",
    "UNEVALUATED_PROPERTIES_NARROWED",
    "UNEVALUATED_PROPERTIES_REMOVED",
    "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
    "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
}
"""Differences that are compatible only with the policy LENIENT."""
_MISSING: Final = "The keyword at path '{}' in the %s schema is not present in the %s schema"
_MORE: Final = "The value at path '{}' in the %s schema is more than its value in the %s schema"
_LESS: Final = "The value at path '{}' in the %s schema is less than its value in the %s schema"
_OTHER: Final = "The value at path '{}' is different between the %s and %s schema"
_FEWER_ELEMENTS: Final = (
    "An array or combined type at path '{}' has fewer elements in the %s schema than the %s schema"
)
_MORE_ELEMENTS: Final = (
    "An array or combined type at path '{}' has more elements in the %s schema than the %s schema"
)
_OTHER_TYPE: Final = "A type at path '{}' is different between the %s schema and the %s schema"
_ADDED_TO_OPEN: Final = (
    "The %s schema has an open content model and has a property or item at path '{}' which is "
    "missing in the %s schema"
)
_ADDED_TO_UNOPEN: Final = (
    "The %s schema has an unopen content model and has a required property at path '{}' which is "
    "missing in the %s schema"
)
_REMOVED_FROM_CLOSED: Final = (
    "The %s has a closed content model and is missing a property or item present at path '{}' in "
    "the %s schema"
)
_REMOVED_NOT_COVERED: Final = (
    "A property or item is missing in the %s schema but present at path '{}' in the %s schema and "
    "is not covered by its partially open content model"
)
_ADDED_NOT_COVERED: Final = (
    "The %s schema has a property or item at path '{}' which is missing in the %s schema and is "
    "not covered by its partially open content model"
)
_SENTENCES: Final = {
    _MISSING: """
        MAXIMUM_ADDED MINIMUM_ADDED EXCLUSIVE_MAXIMUM_ADDED EXCLUSIVE_MINIMUM_ADDED
        MULTIPLE_OF_ADDED MAX_LENGTH_ADDED MIN_LENGTH_ADDED PATTERN_ADDED REQUIRED_ATTRIBUTE_ADDED
        MAX_PROPERTIES_ADDED MIN_PROPERTIES_ADDED DEPENDENCY_ARRAY_ADDED DEPENDENCY_SCHEMA_ADDED
        MAX_ITEMS_ADDED MIN_ITEMS_ADDED MAX_CONTAINS_ADDED MIN_CONTAINS_ADDED UNIQUE_ITEMS_ADDED
        ADDITIONAL_ITEMS_REMOVED ADDITIONAL_PROPERTIES_REMOVED UNEVALUATED_PROPERTIES_REMOVED
        UNEVALUATED_ITEMS_REMOVED""",
    _MORE: """
        MIN_LENGTH_INCREASED MINIMUM_INCREASED EXCLUSIVE_MINIMUM_INCREASED
        MIN_PROPERTIES_INCREASED MULTIPLE_OF_EXPANDED MIN_ITEMS_INCREASED
        MIN_CONTAINS_INCREASED""",
    _LESS: """
        MAX_LENGTH_DECREASED MAXIMUM_DECREASED MAX_ITEMS_DECREASED MAX_CONTAINS_DECREASED
        EXCLUSIVE_MAXIMUM_DECREASED MAX_PROPERTIES_DECREASED""",
    _OTHER: "PATTERN_CHANGED MULTIPLE_OF_CHANGED DEPENDENCY_ARRAY_CHANGED",
    _FEWER_ELEMENTS: """
        ADDITIONAL_ITEMS_NARROWED ENUM_ARRAY_NARROWED SUM_TYPE_NARROWED
        ADDITIONAL_PROPERTIES_NARROWED UNEVALUATED_PROPERTIES_NARROWED
        UNEVALUATED_ITEMS_NARROWED""",
    _MORE_ELEMENTS: """
        DEPENDENCY_ARRAY_EXTENDED PRODUCT_TYPE_EXTENDED SUM_TYPE_EXTENDED NOT_TYPE_EXTENDED""",
    _OTHER_TYPE: """
        TYPE_CHANGED TYPE_NARROWED COMBINED_TYPE_CHANGED COMBINED_TYPE_SUBSCHEMAS_CHANGED
        ENUM_ARRAY_CHANGED""",
    _ADDED_TO_OPEN: """
        REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL
        REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL
        OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL ITEM_ADDED_TO_OPEN_CONTENT_MODEL""",
    _ADDED_TO_UNOPEN: "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
    _REMOVED_FROM_CLOSED: """
        PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL""",
    _REMOVED_NOT_COVERED: """
        PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
        ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL""",
    _ADDED_NOT_COVERED: """
        PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
        ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL""",
}
_SENTENCE_OF: Final = {
    name: sentence for sentence, names in _SENTENCES.items() for name in names.split()
}


class Difference(NamedTuple):
    """One difference at a path like `#/properties/a`."""

    name: str
    path: str

    def is_compatible(self, *, is_lenient: bool = False) -> bool:
        """Return whether the new schema accepts the old one's data in spite of this difference."""
        return fits((self,), is_lenient=is_lenient)

    @property
    def message(self) -> str:
        """The sentence, with `%s` twice: for the reader and for the writer."""
        path = self.path.replace("%", "%%")
        description = _SENTENCE_OF.get(self.name, "").replace("{}", path)
        return f'{{errorType:"{self.name}", description:"{description}\'}}'


def at(prefix: str, path: str) -> str:
    """Return a path relative to the root: the path of a schema and a path in that schema."""
    if path == "#/":
        return prefix
    return f"{prefix if prefix != '#/' else '#'}/{path[2:]}"


Differences = list[Difference]


class Compare(Protocol):
    """Compares two schemas; paths in what it returns are relative to them."""

    def __call__(self, old: Node | None, new: Node | None) -> Differences:
        """Return the differences between two schemas."""

    def fits(self, found: Iterable[Difference]) -> bool:
        """Return whether all differences are compatible."""


def fits(found: Iterable[Difference], *, is_lenient: bool) -> bool:
    """Return whether all differences are compatible by the policy."""
    harmless = _LENIENT if is_lenient else _STRICT
    return all(each.name in harmless for each in found)


_LIMIT_NAMES: Final = {
    "maxLength": "MAX_LENGTH",
    "minLength": "MIN_LENGTH",
    "maximum": "MAXIMUM",
    "minimum": "MINIMUM",
    "exclusiveMaximum": "EXCLUSIVE_MAXIMUM",
    "exclusiveMinimum": "EXCLUSIVE_MINIMUM",
    "maxProperties": "MAX_PROPERTIES",
    "minProperties": "MIN_PROPERTIES",
    "maxItems": "MAX_ITEMS",
    "minItems": "MIN_ITEMS",
    "maxContains": "MAX_CONTAINS",
    "minContains": "MIN_CONTAINS",
}


def limits(old: dict[str, Any], new: dict[str, Any], *names: str) -> Differences:
    """Compare the limits of two schemas."""
    found = []
    for name in names:
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        if before is None:
            how = "ADDED"
        elif after is None:
            how = "REMOVED"
        else:
            how = "INCREASED" if before < after else "DECREASED"
        found.append(Difference(f"{_LIMIT_NAMES[name]}_{how}", f"#/{name}"))
    return found
