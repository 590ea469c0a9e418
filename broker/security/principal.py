"""Names of principals: `Type:name`, as `User:alice`.

The principal of a TLS client is its certificate's subject, shortened by
`ssl.principal.mapping.rules` (KIP-371): a list of `DEFAULT` and of `RULE:pattern/replacement/` with
an `L` or `U` behind it for lower or upper case; `\\/` is a slash within a pattern or a replacement.
The first rule whose pattern matches the whole subject counts; without one the subject is the name.

A replacement reads as in Java: `$1` or `${name}` is a group, `$0` the whole subject, and a
character behind a backslash is itself. A group that the pattern lacks is literal text, as in Kafka,
if the pattern has any group at all. Patterns are RE2's: none takes longer than its text is long.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import re2

from broker.model import shortened

USER = "User"
ANONYMOUS = "User:ANONYMOUS"
MAX_SUBJECT_LENGTH = 4096
_RULE = re.compile(r"RULE:((?:\\.|[^\\/])+)/((?:\\.|[^\\/])*)/([LU]?)")
_PART = re.compile(
    r"\\(?P<literal>.)|\$(?P<number>[0-9]+)|\$\{(?P<name>\w+)\}|(?P<text>[^\\$]+)", re.DOTALL
)
CASES: dict[str, Callable[[str], str]] = {"": str, "L": str.lower, "U": str.upper}


def parse_principal(text: str) -> tuple[str, str]:
    """Split `Type:name`; raises ValueError for anything else."""
    kind, separator, name = text.partition(":")
    if not (kind and separator):
        raise ValueError(f"expected a principal as type:name but got {text!r}")
    return kind, name


def parse_super_users(text: str) -> frozenset[str]:
    """Read `super.users`: principals between semicolons. Raises ValueError."""
    names = [name.strip() for name in text.split(";") if name.strip()]
    for name in names:
        parse_principal(name)
    return frozenset(names)


class MappingRule(NamedTuple):
    """One rule: a pattern of RE2 and what takes the subject's place, or DEFAULT (no pattern)."""

    pattern: str | None = None
    replacement: tuple[str | int, ...] = ()
    """Texts, and the numbers of groups."""
    case: str = ""

    def apply(self, subject: str) -> str | None:
        """Return the name that the rule makes of a subject, None if it does not match."""
        if self.pattern is None:
            return subject
        if re2.fullmatch(self.pattern, subject) is None:
            return None
        # Kafka replaces every match then, as `String.replaceAll` does: `(.*)` matches twice, the
        # subject and the empty text behind it.
        return CASES[self.case](re2.sub(self.pattern, self._filled, subject))

    def _filled(self, match: "re2._Match[str]") -> str:
        return "".join(
            each if isinstance(each, str) else match.group(each) or "" for each in self.replacement
        )


def _parts(replacement: str, pattern: "re2._Regexp[str]") -> Iterator[str | int]:
    """Give the texts and groups of a replacement; raises ValueError."""
    position = 0
    while position < len(replacement):
        found = _PART.match(replacement, position)
        if found is None:
            raise ValueError(f"{replacement[position:]!r} is neither text nor a group")
        position = found.end()
        if found["number"] is not None:
            yield from _numbered(found["number"], pattern.groups)
        elif found["name"] is None:
            yield found["literal"] or found["text"]
        elif found["name"] in pattern.groupindex:
            yield pattern.groupindex[found["name"]]
        else:
            raise ValueError(f"the pattern has no group {found['name']}")


def _numbered(digits: str, group_count: int) -> Iterator[str | int]:
    """Give a group, the longest number that there is, and the digits behind it."""
    for length in range(len(digits), 0, -1):
        if int(digits[:length]) <= group_count:
            yield int(digits[:length])
            if digits[length:]:
                yield digits[length:]
            return
    if not group_count:
        raise ValueError(f"the pattern has no group {digits}")
    yield f"${digits}"


def parse_mapping_rules(text: str) -> list[MappingRule]:
    """Read `ssl.principal.mapping.rules`; raises ValueError with the rule that is wrong."""
    rules = []
    rest = text.strip()
    while rest:
        rule, rest = _next_rule(rest)
        rules.append(rule)
        rest = rest.lstrip()
        if rest:
            if not rest.startswith(","):
                raise ValueError(f"expected a comma between rules before {rest!r}")
            rest = rest[1:].lstrip()
    return rules or [MappingRule()]


def _next_rule(text: str) -> tuple[MappingRule, str]:
    if text.startswith("DEFAULT"):
        return MappingRule(), text[len("DEFAULT") :]
    if not text.startswith("RULE:"):
        raise ValueError(f"expected DEFAULT or RULE:pattern/replacement/ but got {text!r}")
    found = _RULE.match(text)
    if found is None:
        raise ValueError(f"expected RULE:pattern/replacement/ but got {text!r}")
    pattern, replacement, case = found.groups()
    try:
        parts = tuple(_parts(replacement, re2.compile(pattern)))
    except (re2.error, ValueError) as error:
        raise ValueError(f"invalid RULE:{pattern}/{replacement}/: {error}") from error
    return MappingRule(pattern, parts, case), text[found.end() :]


def principal_of_subject(subject: str, rules: list[MappingRule]) -> str:
    """Return the principal of a certificate's subject (an RFC 2253 name).

    Raises ValueError if no rule matches or the subject is too long.
    """
    if len(subject) > MAX_SUBJECT_LENGTH:
        raise ValueError(f"the certificate's subject has more than {MAX_SUBJECT_LENGTH} letters")
    for rule in rules:
        name = rule.apply(subject)
        if name is not None:
            return f"User:{name}"
    raise ValueError(f"no rule of ssl.principal.mapping.rules matches {shortened(subject)}")
