"""A schema as a request brings it, and what it is once it is parsed."""

import json
from typing import Any, NamedTuple

from schemas.registry import refusals
from schemas.registry.compatibility import Earlier
from schemas.registry.domain import Registry
from schemas.registry.records import AVRO, Content, Entry, Reference, sorted_json
from schemas.registry.schema_types import Named, ParsedSchema, parse
from schemas.registry.subjects import parse_subject


class SchemaRequest(NamedTuple):
    """The body of a request that brings a schema."""

    content: Content
    schema_id: int | None = None
    version: int | None = None
    is_normalized: bool = False
    """Whether the caller wants the normalised text compared and stored."""

    @property
    def form(self) -> str:
        """The format in which the schema came, for an answer that its sender understands.

        Confluent's clients for Python and C send a Protobuf schema as a descriptor in base64, and
        take the text in the answer for one. Every other file has a semicolon or a brace.
        """
        is_file = any(mark in self.content.schema for mark in ";{")
        return "serialized" if self.content.schema_type == "PROTOBUF" and not is_file else ""


class Candidate(NamedTuple):
    """A valid schema, and the content it would be stored as."""

    schema: ParsedSchema
    content: Content


def read_request(body: Any, *, is_normalized: bool) -> SchemaRequest:
    """Read a request's JSON. Raises RegistryError, 42201, for what is none."""
    if not isinstance(body, dict) or not isinstance(body.get("schema"), str) or not body["schema"]:
        raise refusals.invalid_schema("Empty schema")
    for name in ("metadata", "ruleSet"):
        if not isinstance(body.get(name), dict | None):
            raise refusals.invalid_schema(f"Invalid {name}: not an object")
    content = Content(
        body["schema"],
        str(body.get("schemaType") or AVRO),
        _references(body.get("references")),
        sorted_json(body.get("metadata")),
        sorted_json(body.get("ruleSet")),
    )
    schema_id, version = _number(body, "id"), _number(body, "version")
    return SchemaRequest(content, schema_id, version, is_normalized)


def _references(given: Any) -> tuple[Reference, ...]:
    try:
        return tuple(
            Reference(str(each["name"]), str(each["subject"]), int(each["version"]))
            for each in given or ()
        )
    except (KeyError, TypeError, ValueError) as error:
        raise refusals.invalid_schema(f"Invalid references: {error!r}") from error


def _number(body: dict[str, Any], name: str) -> int | None:
    """Read an id or version; what clients send for none is not one."""
    number = body.get(name)
    lowest = 0 if name == "id" else 1
    if number is None or (isinstance(number, int) and number < lowest):
        return None
    if not isinstance(number, int) or number >= 2**31:
        raise refusals.invalid_schema(f"Invalid {name}: {number}")
    return number


def candidate(registry: Registry, subject: str, request: SchemaRequest) -> Candidate:
    """Parse the schema of a request. Raises RegistryError, 42201."""
    asked = request.content
    schema = parse(asked.schema_type, asked.schema, named_by(registry, subject, asked))
    is_normalized = request.is_normalized or registry.config_in_scope(subject).get("normalize")
    text = schema.normalized() if is_normalized else schema.canonical
    content = Content(text, asked.schema_type, asked.references, asked.metadata, asked.rule_set)
    return Candidate(schema, content)


def named_by(registry: Registry, subject: str, content: Content) -> Named:
    """Return what a schema refers to, each after what it needs itself. Raises RegistryError."""
    found: dict[tuple[str, int], tuple[str, str]] = {}
    _collect(registry, subject, content, found, ())
    return tuple(found.values())


def _collect(
    registry: Registry,
    subject: str,
    content: Content,
    found: dict[tuple[str, int], tuple[str, str]],
    on_the_way: tuple[tuple[str, int], ...],
) -> None:
    for reference in content.references:
        target = parse_subject(subject).relative(reference.subject).qualified
        place = (target, reference.version)
        if place in found or place in on_the_way:
            continue
        entry = registry.version(*place, with_deleted=True)
        if entry is None:
            raise refusals.invalid_schema(
                f'No schema reference found for subject "{reference.subject}" and version '
                f"{reference.version}"
            )
        _collect(registry, target, entry.content, found, (*on_the_way, place))
        found[place] = (reference.name, entry.content.schema)


def parsed(registry: Registry, entry: Entry) -> ParsedSchema:
    """Parse a stored version. Raises RegistryError when another registry stored what is invalid."""
    named = named_by(registry, entry.subject, entry.content)
    return parse(entry.content.schema_type, entry.content.schema, named)


def earlier_versions(
    registry: Registry, versions: list[Entry], new: Candidate, group: str | None
) -> list[Earlier]:
    """Parse those versions that the new one is compared with, oldest first.

    With `compatibilityGroup` these are the ones with the same value of that metadata property.
    """
    return [
        Earlier(entry.version, entry.content.schema_type, parsed(registry, entry))
        for entry in versions
        if group is None or _property(entry.content, group) == _property(new.content, group)
    ]


def _property(content: Content, name: str) -> Any:
    metadata = json.loads(content.metadata) if content.metadata else {}
    return (metadata.get("properties") or {}).get(name)
