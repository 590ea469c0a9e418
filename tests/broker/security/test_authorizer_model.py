"""The authorizer against a naive model: all operations, kinds of resources, patterns and hosts.

The model reads the rules one by one, in the words of Kafka's documentation. Bugs that are planted
into the authorizer show that the comparison finds bugs.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from broker.security import authorizer as authorizer_module
from broker.security.authorizer import Authorizer, Requester
from common.kafka.acls import (
    CLUSTER_NAME,
    Acl,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)

ALLOW, DENY = PermissionType.ALLOW, PermissionType.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
KINDS = [kind for kind in ResourceType if kind > ResourceType.ANY]
OPERATIONS = [operation for operation in AclOperation if operation > AclOperation.ANY]
NAMES = ["a", "ab", "abc", "b", "*", "User:alice"]
ADMIN = "User:admin"
HOSTS = {"10.0.0.1": {"10.0.0.1", "::ffff:10.0.0.1"}, "::1": {"::1", "0:0:0:0:0:0:0:1"}}
"""The plain spelling of an address, and the spellings that a rule may have."""


class Case(NamedTuple):
    """Some rules, and what a requester asks for."""

    rules: list[Acl]
    requester: Requester
    operation: int
    kind: int
    name: str
    is_open: bool

    def decided(self) -> bool:
        return self._authorizer().may(self.requester, self.operation, self.kind, self.name)

    def decided_for_any(self) -> bool:
        return self._authorizer().may_on_any(self.requester, self.operation, self.kind)

    def _authorizer(self) -> Authorizer:
        return Authorizer(
            self.rules, super_users={ADMIN}, allow_everyone_if_no_acl_found=self.is_open
        )

    def expected(self, name: str | None = None) -> bool:
        asked = self.name if name is None else name
        if self.requester.principal == ADMIN:
            return True
        about = [rule for rule in self.rules if is_about_resource(rule, self.kind, asked)]
        if not about:
            return self.is_open
        mine = [rule for rule in about if is_about_requester(rule, self.requester)]
        if any(
            rule.permission_type == DENY and rule.operation in (AclOperation.ALL, self.operation)
            for rule in mine
        ):
            return False
        return any(
            rule.permission_type == ALLOW and is_enough(rule, self.operation) for rule in mine
        )

    def expected_for_any(self) -> bool:
        """Ask for enough names: each that a rule has, a longer one of each, and another one."""
        named = {rule.pattern.name for rule in self.rules}
        return any(map(self.expected, [*sorted(named - {"*"}), *(f"{n}~" for n in named), "zz"]))


def is_about_resource(rule: Acl, kind: int, name: str) -> bool:
    pattern = rule.pattern
    if pattern.resource_type != kind:
        return False
    if pattern.pattern_type == PREFIXED:
        return name.startswith(pattern.name)
    return pattern.name == "*" or pattern.name == name


def is_about_requester(rule: Acl, requester: Requester) -> bool:
    has_host = rule.host == "*" or rule.host in HOSTS.get(requester.host, {requester.host})
    return has_host and rule.principal in ("User:*", requester.principal)


def is_enough(rule: Acl, operation: int) -> bool:
    return rule.operation in (AclOperation.ALL, operation, *implying(operation))


def implying(operation: int) -> list[int]:
    """Return the operations whose permission is one for this operation too."""
    if operation == AclOperation.DESCRIBE:
        return [
            AclOperation.READ,
            AclOperation.WRITE,
            AclOperation.DELETE,
            AclOperation.ALTER,
        ]
    return [AclOperation.ALTER_CONFIGS] if operation == AclOperation.DESCRIBE_CONFIGS else []


requesters = st.builds(
    Requester,
    st.sampled_from(["User:alice", "User:bob", ADMIN, "Group:alice"]),
    st.sampled_from([*HOSTS, "10.0.0.2"]),
)
ANY_PRINCIPAL = ["User:alice", "User:bob", "User:*", ADMIN, "Group:alice"]
ANY_HOST = ["*", "10.0.0.2", *sorted(set().union(*HOSTS.values()))]


def rule_of(number: int, asked: Case) -> Acl:
    """Make a rule of a number; each field is more often than not about what is asked for.

    One draw of Hypothesis for each rule instead of seven: a planted bug is found in a second.
    """
    digits = number * 0x9E3779B97F4A7C15 % 2**64  # Hypothesis prefers small numbers.

    def field(near: list[Any], others: list[Any]) -> Any:
        nonlocal digits
        options = [*near * (1 + len(others) // len(near)), *others]
        digits, index = divmod(digits, len(options))
        return options[index]

    kind = field([asked.kind], KINDS)
    near_names = [asked.name, asked.name[:1], "*"] if kind == asked.kind else ["*"]
    name = field(near_names, NAMES)
    return Acl(
        ResourcePattern(
            kind,
            CLUSTER_NAME if kind == ResourceType.CLUSTER else name,
            field([LITERAL, PREFIXED], []),
        ),
        field([asked.requester.principal, "User:*"], ANY_PRINCIPAL),
        field(["*", *sorted(HOSTS.get(asked.requester.host, []))], ANY_HOST),
        field([asked.operation, AclOperation.ALL, *implying(asked.operation)], OPERATIONS),
        field([ALLOW, DENY], []),
    )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    kind = draw(st.sampled_from(KINDS))
    asked = Case(
        [],
        draw(requesters),
        draw(st.sampled_from([AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS, *OPERATIONS])),
        kind,
        CLUSTER_NAME if kind == ResourceType.CLUSTER else draw(st.sampled_from(NAMES)),
        draw(st.booleans()),
    )
    numbers = draw(st.lists(st.integers(0, 2**32), max_size=5))
    return asked._replace(rules=[rule_of(number, asked) for number in numbers])


@settings(max_examples=400)
@given(cases())
def test_the_index_decides_as_the_rules_read_one_by_one(case: Case) -> None:
    assert case.decided() == case.expected()


@settings(max_examples=200)
@given(cases())
def test_a_right_on_any_resource_is_a_right_on_some_name(case: Case) -> None:
    if case.kind != ResourceType.CLUSTER:  # of which there is one
        assert case.decided_for_any() == case.expected_for_any()


# --- planted bugs ---


def first_match(self: Any, requester: Requester, operation: int, kind: int, name: str) -> bool:
    """Let the rule that is found first decide: ALLOW may come before DENY."""
    if requester.principal in self._super_users:
        return True
    is_named = False
    for rules in self._rules_for(kind, name):
        is_named = True
        for acl in sorted(rules, key=lambda each: -each.permission_type):
            if authorizer_module._is_about(acl, requester):
                if authorizer_module._allows(acl, operation):
                    return True
                if authorizer_module._denies(acl, operation):
                    return False
    return not is_named and bool(self._allows_unnamed)


def literal_only(self: Any, kind: int, name: str) -> Iterator[set[Acl]]:
    """Read a prefix as a literal name."""
    for literal in {name, "*"}:
        for index in (self._literal, self._prefixed):
            if (kind, literal) in index:
                yield index[kind, literal]


def without_wildcard(self: Any, kind: int, name: str) -> Iterator[set[Acl]]:
    """Take `*` for a name."""
    for index, keys in (
        (self._literal, [name]),
        (self._prefixed, [name[:length] for length in range(len(name) + 1)]),
    ):
        yield from (index[kind, each] for each in keys if (kind, each) in index)


def of_any_kind(self: Any, kind: int, name: str) -> Iterator[set[Acl]]:
    """Forget the kind of a resource."""
    for index in (self._literal, self._prefixed):
        for (_, known), rules in index.items():
            if (
                name == known
                or known == "*"
                or (index is self._prefixed and name.startswith(known))
            ):
                yield rules


def shorter_prefixes_only(self: Any, kind: int, name: str) -> Iterator[set[Acl]]:
    """Leave out the prefix that is the whole name."""
    yield from (self._literal[kind, each] for each in {name, "*"} if (kind, each) in self._literal)
    prefixes = (name[:length] for length in range(len(name)))
    yield from (self._prefixed[kind, each] for each in prefixes if (kind, each) in self._prefixed)


def host_as_text(acl: Acl, requester: Requester) -> bool:
    """Read `*` as the name of a host."""
    return acl.principal in {requester.principal, "User:*"} and acl.host == requester.host


def host_of_nobody(acl: Acl, requester: Requester) -> bool:
    """Forget the host."""
    return acl.principal in {requester.principal, "User:*"}


def no_everybody(acl: Acl, requester: Requester) -> bool:
    """Forget `User:*`."""
    return acl.principal == requester.principal and acl.host in {requester.host, "*"}


def any_type(acl: Acl, requester: Requester) -> bool:
    """Compare names of principals without their type."""
    _, _, name = requester.principal.partition(":")
    return acl.principal.partition(":")[2] in {name, "*"} and acl.host in {requester.host, "*"}


def implying_deny(acl: Acl, operation: int) -> bool:
    """Let a DENY of READ deny DESCRIBE too."""
    implied = authorizer_module.IMPLYING.get(operation, frozenset())
    wanted = {operation, AclOperation.ALL, *implied}
    return acl.permission_type == DENY and acl.operation in wanted


def deny_without_all(acl: Acl, operation: int) -> bool:
    """Forget that ALL is every operation."""
    return acl.permission_type == DENY and acl.operation == operation


PLANTED: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "the first rule decides": (Authorizer, "_decide", first_match),
    "a prefix is a literal name": (Authorizer, "_rules_for", literal_only),
    "a wildcard is a name": (Authorizer, "_rules_for", without_wildcard),
    "a rule is about every kind": (Authorizer, "_rules_for", of_any_kind),
    "a prefix is shorter than a name": (Authorizer, "_rules_for", shorter_prefixes_only),
    "a wildcard is a host": (authorizer_module, "_is_about", host_as_text),
    "no host counts": (authorizer_module, "_is_about", host_of_nobody),
    "nobody is everybody": (authorizer_module, "_is_about", no_everybody),
    "types of principals": (authorizer_module, "_is_about", any_type),
    "DENY implies": (authorizer_module, "_denies", implying_deny),
    "DENY of ALL": (authorizer_module, "_denies", deny_without_all),
    "ALLOW implies nothing": (authorizer_module, "IMPLYING", {}),  # type: ignore[dict-item]
    "spellings of addresses": (authorizer_module, "plain_address", str),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, planted = PLANTED[bug]
    monkeypatch.setattr(where, name, planted)
    assert differs(lambda case: case.decided() != case.expected())


def test_no_bug_is_found_where_none_is_planted() -> None:
    assert not differs(lambda case: case.decided() != case.expected(), 300)


def test_a_planted_bug_in_the_right_on_any_resource_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(allowed: Acl, denied: Iterable[Acl]) -> bool:
        return False

    monkeypatch.setattr(authorizer_module, "_is_dominated", never)
    assert differs(
        lambda case: (
            case.kind != ResourceType.CLUSTER and case.decided_for_any() != case.expected_for_any()
        )
    )


def differs(condition: Callable[[Case], bool], examples: int = 4_000) -> bool:
    """Return whether there is a case for which the condition holds."""
    try:
        find(
            cases(),
            condition,
            settings=settings(
                max_examples=examples,
                database=None,
                derandomize=True,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            ),
        )
    except NoSuchExample:
        return False
    return True
