"""The schema of a request, before and after it is parsed."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

from schemas.registry import refusals
from schemas.registry.domain import Place, Registry
from schemas.registry.metadata import checked_metadata, checked_rule_set
from schemas.registry.questions import Ask, Find, Named, Parse
from schemas.registry.records import AVRO, Content, Entry, Reference, sorted_json
from schemas.registry.refusals import RegistryError
from schemas.registry.subjects import parse_subject

LATEST: Final = -1
_SEARCHED: Final = 100
_REFERENCES_LIMIT: Final = 1_000
_REFERENCES_CHARACTERS: Final = 8 << 20


class SchemaRequest(NamedTuple):
    """The body of a request with a schema."""

    content: Content
    schema_id: int | None = None
    version: int | None = None
    is_normalized: bool = False
    """True if the caller wants the normalised text compared and stored."""

    @property
    def form(self) -> str:
        """The format of the schema in the request, for an answer that its sender understands.

        Confluent's clients for Python and C send a Protobuf schema as a descriptor in base64, and
        expect one in the answer. The text of a schema has a semicolon or a brace.
        """
        is_file = any(mark in self.content.schema for mark in ";{")
        return "serialized" if self.content.schema_type == "PROTOBUF" and not is_file else ""


class Candidate(NamedTuple):
    """A valid schema, and the content it would be stored as."""

    question: Parse
    content: Content


def read_request(body: Any, *, is_normalized: bool) -> SchemaRequest:
    """Read a request's JSON. Raises RegistryError, 42201, for an invalid body."""
    if not isinstance(body, dict) or not isinstance(body.get("schema"), str) or not body["schema"]:
        raise refusals.invalid_schema("Empty schema")
    schema_type = body.get("schemaType") or AVRO
    if not isinstance(schema_type, str):
        raise refusals.invalid_schema("Invalid schemaType: not a string")
    content = Content(
        body["schema"],
        schema_type,
        _references(body.get("references")),
        sorted_json(checked_metadata(body.get("metadata"))),
        sorted_json(checked_rule_set(body.get("ruleSet"))),
    )
    schema_id, version = _number(body, "id"), _number(body, "version")
    return SchemaRequest(content, schema_id, version, is_normalized)


def _references(value: Any) -> tuple[Reference, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise refusals.invalid_schema("Invalid references: not a list")
    if len(value) > _REFERENCES_LIMIT:
        raise refusals.invalid_schema(f"Invalid references: more than {_REFERENCES_LIMIT}")
    return tuple(_reference(each) for each in value)


def _reference(value: Any) -> Reference:
    if not isinstance(value, dict):
        raise refusals.invalid_schema("Invalid reference: not an object")
    name, subject, version = (value.get(member) for member in Reference._fields)
    if not isinstance(name, str) or not isinstance(subject, str):
        raise refusals.invalid_schema("Invalid reference: 'name' and 'subject' must be strings")
    if not isinstance(version, int) or not (version == LATEST or 1 <= version < 2**31):
        raise refusals.invalid_schema(
            f"Invalid reference to subject \"{subject}\": 'version' must be 1 or more, or -1 "
            "for the newest"
        )
    return Reference(name, subject, version)


def _is_integer(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


def _number(body: dict[str, Any], name: str) -> int | None:
    """Read an id or version; None for the values that clients send for none."""
    number = body.get(name)
    lowest = 0 if name == "id" else 1
    if number is None or (_is_integer(number) and number < lowest):
        return None
    if not _is_integer(number) or number >= 2**31:
        raise refusals.invalid_schema(f"Invalid {name}: not a number below 2^31")
    return int(number)


def candidate(registry: Registry, subject: str, request: SchemaRequest, ask: Ask) -> Candidate:
    """Return the content that a request would store. Raises RegistryError, 42201, Unanswered."""
    asked = request.content
    references = tuple(_with_version(registry, subject, each) for each in asked.references)
    asked = replace(asked, references=references)
    question = Parse(asked.schema_type, asked.schema, named_by(registry, subject, asked))
    parsed = ask(question)
    is_normalized = request.is_normalized or registry.config_in_scope(subject).get("normalize")
    text = parsed.normalized if is_normalized else parsed.canonical
    return Candidate(question, replace(asked, schema=text))


def _with_version(registry: Registry, subject: str, reference: Reference) -> Reference:
    """Replace -1, the newest version, in a reference by the number of that version."""
    if reference.version != LATEST:
        return reference
    target = parse_subject(subject).relative(reference.subject).qualified
    newest = registry.latest(target)
    if newest is None:
        raise _no_reference(reference)
    return reference._replace(version=newest.version)


def _no_reference(reference: Reference) -> RegistryError:
    return refusals.invalid_schema(
        f'No schema reference found for subject "{reference.subject}" and version '
        f"{reference.version}"
    )


def named_by(registry: Registry, subject: str, content: Content) -> Named:
    """Return the references of a schema, each after its own references. Raises RegistryError."""
    found: dict[Place, tuple[str, str]] = {}
    size = 0
    # An explicit stack: a chain of references may be longer than Python's own stack.
    waiting: list[tuple[str, Reference | None, Iterator[Reference]]] = [
        (subject, None, iter(content.references))
    ]
    on_the_way: set[Place] = set()
    while waiting:
        at, reached_by, references = waiting[-1]
        reference = next(references, None)
        if reference is None:
            waiting.pop()
            if reached_by is not None:
                place = (at, reached_by.version)
                text = _referred(registry, place, reached_by).content.schema
                found[place] = (reached_by.name, text)
                size += len(text)
                _check_size(len(found), size)
            continue
        place = (parse_subject(at).relative(reference.subject).qualified, reference.version)
        if place not in found and place not in on_the_way:
            on_the_way.add(place)
            entry = _referred(registry, place, reference)
            waiting.append((place[0], reference, iter(entry.content.references)))
    return tuple(found.values())


def _referred(registry: Registry, place: Place, reference: Reference) -> Entry:
    entry = registry.version(*place, with_deleted=True)
    if entry is None:
        raise _no_reference(reference)
    return entry


def _check_size(count: int, size: int) -> None:
    if count > _REFERENCES_LIMIT or size > _REFERENCES_CHARACTERS:
        raise refusals.invalid_schema(
            f"The schema refers to more than {_REFERENCES_LIMIT} others or to more than "
            f"{_REFERENCES_CHARACTERS} characters"
        )


def question_about(registry: Registry, entry: Entry) -> Parse:
    """Return the question that parses a stored version. Raises RegistryError."""
    content = entry.content
    return Parse(content.schema_type, content.schema, named_by(registry, entry.subject, content))


def known_version(
    registry: Registry, subject: str, new: Candidate, ask: Ask, *, with_deleted: bool = False
) -> Entry | None:
    """Return the newest version of a subject that is this schema.

    A Protobuf schema is also the same as one whose text another registry has written differently;
    the newest versions are searched for it.
    """
    found = registry.find(subject, new.content, with_deleted=with_deleted)
    if found is not None or new.content.schema_type != "PROTOBUF":
        return found
    versions = {
        entry.version: entry
        for entry in registry.versions(subject, with_deleted=with_deleted)[: -_SEARCHED - 1 : -1]
        if replace(entry.content, schema=new.content.schema) == new.content
    }
    if not versions:
        return None
    named = new.question.named
    questions = tuple(
        (version, Parse("PROTOBUF", entry.content.schema, named))
        for version, entry in versions.items()
    )
    same: list[int] = ask(Find(new.question, questions))
    return versions[same[0]] if same else None


def earlier_versions(
    registry: Registry, versions: list[Entry], new: Candidate, group: str | None
) -> tuple[tuple[int, Parse], ...]:
    """Return those versions that the new one is compared with, oldest first.

    With `compatibilityGroup` these are the ones with the same value of that metadata property.
    """
    return tuple(
        (entry.version, question_about(registry, entry))
        for entry in versions
        if group is None or _property(entry.content, group) == _property(new.content, group)
    )


def _property(content: Content, name: str) -> Any:
    metadata = json.loads(content.metadata) if content.metadata else {}
    return (metadata.get("properties") or {}).get(name)
