"""Short names of Kerberos principals: `sasl.kerberos.principal.to.local.rules` (KIP-102).

A principal is `primary@REALM` or `primary/instance@REALM`. The first rule that matches counts:

    DEFAULT                                the primary, for principals of the default realm
    RULE:[n:string](regexp)s/from/to/g/L   for principals of n components: `string`, with $0 for the
                                           realm and $1 ... for the components, has to match regexp;
                                           then from is replaced, once or (g) each time, and L or U
                                           makes lower or upper case

Patterns are RE2's: none takes longer than its text is long.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

import re2

MAX_LENGTH = 4096
_RULE = re.compile(
    r"(?P<default>DEFAULT)"
    r"|RULE:\[(?P<count>\d{1,3}):(?P<format>[^\]]*)\]"
    r"(?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<from>[^/]*)/(?P<to>[^/]*)/(?P<each>g)?)?/?(?P<case>[LU])?"
)
_PRINCIPAL = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
_PARAMETER = re.compile(r"\$(\d)")
_CASES: dict[str | None, Callable[[str], str]] = {None: str, "L": str.lower, "U": str.upper}


class Principal(NamedTuple):
    """A principal in its parts."""

    components: tuple[str, ...]
    realm: str


def parse_kerberos_principal(text: str) -> Principal:
    """Split a principal; raises ValueError."""
    found = _PRINCIPAL.fullmatch(text) if len(text) <= MAX_LENGTH else None
    if found is None:
        raise ValueError(f"{text[:100]!r} is no Kerberos principal")
    primary, instance, realm = found.groups()
    return Principal((primary,) if instance is None else (primary, instance), realm)


class _Rule(NamedTuple):
    is_default: bool
    component_count: int = 0
    format: str = ""
    match: str | None = None
    replaced: str | None = None
    replacement: str = ""
    is_for_each: bool = False
    case: str | None = None

    def apply(self, principal: Principal, default_realm: str) -> str | None:
        """Return the short name, None if the rule does not match."""
        if self.is_default:
            return principal.components[0] if principal.realm == default_realm else None
        if len(principal.components) != self.component_count:
            return None
        parts = (principal.realm, *principal.components)
        name = _PARAMETER.sub(lambda found: parts[int(found[1])], self.format)
        if self.match is not None and re2.fullmatch(self.match, name) is None:
            return None
        if self.replaced is not None:
            to = re.sub(r"\$(\d)", r"\\\1", self.replacement)
            name = re2.sub(self.replaced, to, name, count=0 if self.is_for_each else 1)
        return _CASES[self.case](name)


class ShortNames:
    """Makes short names by the rules of one listener."""

    def __init__(self, rules: list[str], default_realm: str) -> None:
        """Raises ValueError for a rule that is none."""
        self._rules = [_parse(rule) for rule in rules]
        self._default_realm = default_realm

    def of(self, principal: str) -> str:
        """Return the short name of a principal; raises ValueError if no rule gives one."""
        parsed = parse_kerberos_principal(principal)
        for rule in self._rules:
            try:
                name = rule.apply(parsed, self._default_realm)
            except (re2.error, IndexError) as error:  # A group that is not there.
                raise ValueError(f"a rule of short names is invalid: {error}") from error
            if name is None:
                continue
            if not name or "/" in name or "@" in name:
                break
            return name
        raise ValueError(f"no rule of sasl.kerberos.principal.to.local.rules names {principal!r}")


def _parse(text: str) -> _Rule:
    found = _RULE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no rule")
    if found["default"]:
        return _Rule(is_default=True)
    rule = _Rule(
        False,
        int(found["count"]),
        found["format"],
        found["match"],
        found["from"],
        found["to"] or "",
        found["each"] is not None,
        found["case"],
    )
    if any(int(number) > rule.component_count for number in _PARAMETER.findall(rule.format)):
        raise ValueError(f"{text!r} names a component that there is not")
    try:
        for pattern in (rule.match, rule.replaced):
            if pattern is not None:
                re2.compile(pattern)
    except re2.error as error:
        raise ValueError(f"{text!r}: a pattern is invalid: {error}") from error
    return rule
