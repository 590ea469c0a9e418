"""Names of principals: `Type:name`, as `User:alice`.

The principal of a TLS client is its certificate's subject, shortened by
`ssl.principal.mapping.rules` (KIP-371): a list of `DEFAULT` and of `RULE:pattern/replacement/` with
an `L` or `U` behind it for lower or upper case. The first rule whose pattern matches the whole
subject counts; without one the subject is the name.
"""

from collections.abc import Callable
from typing import NamedTuple

import re2

USER = "User"
ANONYMOUS = "User:ANONYMOUS"
MAX_SUBJECT_LENGTH = 4096
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
    replacement: str = ""
    case: str = ""

    def apply(self, subject: str) -> str | None:
        """Return the name that the rule makes of a subject, None if it does not match."""
        if self.pattern is None:
            return subject
        match = re2.fullmatch(self.pattern, subject)
        if match is None:
            return None
        return CASES[self.case](_filled(self.replacement, match))


def _filled(replacement: str, match: "re2._Match[str]") -> str:
    """Put groups into the place of `$1` to `$9`."""
    result, position = "", 0
    while position < len(replacement):
        character = replacement[position]
        following = replacement[position + 1 : position + 2]
        if character == "$" and following.isascii() and following.isdigit():
            group = int(following)
            result += (match.group(group) or "") if group <= match.re.groups else ""
            position += 2
        else:
            result += character
            position += 1
    return result


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
    pattern, first, text_after = text[len("RULE:") :].partition("/")
    replacement, second, rest = text_after.partition("/")
    if not (pattern and first and second):
        raise ValueError(f"expected RULE:pattern/replacement/ but got {text!r}")
    try:
        re2.compile(pattern)
    except re2.error as error:
        raise ValueError(f"invalid pattern in RULE:{pattern}: {error}") from error
    case = rest[:1] if rest[:1] in {"L", "U"} else ""
    return MappingRule(pattern, replacement, case), rest[len(case) :]


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
    raise ValueError(f"no rule of ssl.principal.mapping.rules matches {subject!r}")
