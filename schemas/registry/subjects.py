"""Names of subjects: `:.context:subject`, or plain `subject` in the default context ".".

Ids, versions, configuration and modes of a context are independent of all others. `:.context:`
without a subject names the context itself. The name `:.__GLOBAL:` stands for all contexts.
The syntax is Confluent's (docs.confluent.io, "Schema Registry: schema contexts").
"""

from typing import Final, NamedTuple

DEFAULT_CONTEXT: Final = "."
GLOBAL_CONTEXT: Final = ".__GLOBAL"
WILDCARD: Final = "*"
_PREFIX: Final = ":."
_ANY_CONTEXT: Final = ":*:"
_RESERVED: Final = frozenset({"__GLOBAL", "__EMPTY"})


class Subject(NamedTuple):
    """A subject within its context; an empty name is the context itself."""

    context: str
    name: str

    @property
    def qualified(self) -> str:
        """The canonical name of this subject, for records and answers."""
        return qualified_context(self.context) + self.name

    @property
    def is_context(self) -> bool:
        return not self.name

    def relative(self, other: str) -> "Subject":
        """Return what a reference from this subject means: by default one in the same context."""
        found = parse_subject(other)
        return Subject(self.context, found.name) if found.context == DEFAULT_CONTEXT else found


def qualified_context(context: str) -> str:
    """Return a context as a prefix of a subject; empty for the default context."""
    return "" if context == DEFAULT_CONTEXT else f":{context}:"


def parse_subject(text: str) -> Subject:
    """Split a name into context and subject. Every string has a result; see `is_valid`."""
    if text.startswith(_PREFIX):
        context, _, name = text[1:].partition(":")
        return Subject(context, name)
    if text.startswith(_ANY_CONTEXT):
        return Subject(WILDCARD, text.removeprefix(_ANY_CONTEXT))
    return Subject(DEFAULT_CONTEXT, text)


def is_valid(text: str, *, may_be_context: bool = False) -> bool:
    """Return whether a schema or a setting may be stored under this name."""
    subject = parse_subject(text)
    if any(ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 for character in text):
        return False
    if subject.context == WILDCARD or ":" in subject.context:
        return False
    if subject.is_context:
        return may_be_context and text != ""
    return subject.context != GLOBAL_CONTEXT and subject.name not in _RESERVED


def matches_prefix(subject: Subject, prefix: str) -> bool:
    """Return whether a subject is listed for this prefix; `:*:` is every context."""
    wanted = parse_subject(prefix)
    if wanted.context not in (WILDCARD, subject.context):
        return False
    return subject.name.startswith(wanted.name)
