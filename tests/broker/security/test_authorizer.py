"""The authorizer against a naive model of its rules, and rule by rule."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.security.authorizer import MAX_REMEMBERED_BYTES, Authorizer, Requester
from common.kafka.acls import (
    Acl,
    AclFilter,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)

READ, WRITE, ALL = AclOperation.READ, AclOperation.WRITE, AclOperation.ALL
ALLOW, DENY = PermissionType.ALLOW, PermissionType.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
ALICE = Requester("User:alice", "10.0.0.1")

NAMES = ("a", "ab", "abc", "b", "*", "")
OPERATIONS = [operation for operation in AclOperation if operation > AclOperation.ANY]


def rule(
    name: str = "orders",
    *,
    operation: int = READ,
    permission: int = ALLOW,
    principal: str = "User:alice",
    host: str = "*",
    pattern: int = LITERAL,
    kind: int = TOPIC,
) -> Acl:
    return Acl(ResourcePattern(kind, name, pattern), principal, host, operation, permission)


def authorizer(*rules: Acl, **more: bool) -> Authorizer:
    return Authorizer(rules, super_users={"User:admin"}, **more)  # type: ignore[arg-type]


IMPLIED = {
    AclOperation.DESCRIBE: {READ, WRITE, AclOperation.DELETE, AclOperation.ALTER},
    AclOperation.DESCRIBE_CONFIGS: {AclOperation.ALTER_CONFIGS},
}


def model(
    rules: Iterable[Acl], requester: Requester, operation: int, name: str, *, is_open: bool
) -> bool:
    """Decide in the order of the rules' text, without an index."""
    if requester.principal == "User:admin":
        return True
    about = [
        acl
        for acl in rules
        if acl.pattern.resource_type == TOPIC
        and (
            name.startswith(acl.pattern.name)
            if acl.pattern.pattern_type == PREFIXED
            else acl.pattern.name in (name, "*")
        )
    ]
    if not about:
        return is_open
    mine = [
        acl
        for acl in about
        if acl.principal in ("User:*", requester.principal) and acl.host in ("*", requester.host)
    ]
    if any(acl.permission_type == DENY and acl.operation in (ALL, operation) for acl in mine):
        return False
    enough = {ALL, operation, *IMPLIED.get(AclOperation(operation), set())}
    return any(acl.permission_type == ALLOW and acl.operation in enough for acl in mine)


acls = st.builds(
    Acl,
    st.builds(
        ResourcePattern,
        st.sampled_from([TOPIC, GROUP]),
        st.sampled_from(NAMES[:-1]),
        st.sampled_from([LITERAL, PREFIXED]),
    ),
    st.sampled_from(["User:alice", "User:bob", "User:*", "User:admin"]),
    st.sampled_from(["*", "10.0.0.1", "10.0.0.2"]),
    st.sampled_from(OPERATIONS),
    st.sampled_from([ALLOW, DENY]),
)
requesters = st.builds(
    Requester,
    st.sampled_from(["User:alice", "User:bob", "User:admin"]),
    st.sampled_from(["10.0.0.1", "10.0.0.2"]),
)


@given(
    st.lists(acls, max_size=8),
    requesters,
    st.sampled_from(OPERATIONS),
    st.sampled_from(NAMES),
    st.booleans(),
)
def test_the_index_decides_as_the_rules_read_one_by_one(
    rules: list[Acl],
    requester: Requester,
    operation: int,
    name: str,
    is_open: bool,
) -> None:
    decides = Authorizer(rules, super_users={"User:admin"}, allow_everyone_if_no_acl_found=is_open)
    expected = model(rules, requester, operation, name, is_open=is_open)
    assert decides.may(requester, operation, TOPIC, name) == expected
    assert decides.may(requester, operation, TOPIC, name) == expected


@given(st.lists(acls, max_size=6), requesters, st.sampled_from(OPERATIONS))
def test_a_right_on_any_resource_is_a_right_on_some_name(
    rules: list[Acl], requester: Requester, operation: int
) -> None:
    decides = authorizer(*rules)
    names = ("a", "ab", "abc", "b", "abcd", "ax", "bx", "zz")
    has_some = any(model(rules, requester, operation, name, is_open=False) for name in names)
    # A literal rule for "*" under a prefix DENY of everything cannot come up with these names.
    assert decides.may_on_any(requester, operation, TOPIC) == has_some


def test_deny_beats_allow_also_when_it_is_less_exact() -> None:
    decides = authorizer(rule("orders"), rule("ord", permission=DENY, pattern=PREFIXED))
    assert not decides.may(ALICE, READ, TOPIC, "orders")


@pytest.mark.parametrize(
    ("given_operation", "asked"),
    [
        (READ, AclOperation.DESCRIBE),
        (WRITE, AclOperation.DESCRIBE),
        (AclOperation.DELETE, AclOperation.DESCRIBE),
        (AclOperation.ALTER, AclOperation.DESCRIBE),
        (AclOperation.ALTER_CONFIGS, AclOperation.DESCRIBE_CONFIGS),
    ],
)
def test_allow_implies_describe_and_deny_does_not(given_operation: int, asked: int) -> None:
    assert authorizer(rule(operation=given_operation)).may(ALICE, asked, TOPIC, "orders")
    denied = authorizer(rule(operation=asked), rule(operation=given_operation, permission=DENY))
    assert denied.may(ALICE, asked, TOPIC, "orders")


def test_what_no_rule_names_is_denied_unless_the_setting_allows_it() -> None:
    assert not authorizer(rule("other")).may(ALICE, READ, TOPIC, "orders")
    is_open = authorizer(rule("other"), allow_everyone_if_no_acl_found=True)
    assert is_open.may(ALICE, READ, TOPIC, "orders")
    # A rule for somebody else names the resource.
    named = authorizer(rule(principal="User:bob"), allow_everyone_if_no_acl_found=True)
    assert not named.may(ALICE, READ, TOPIC, "orders")


@pytest.mark.parametrize(("length", "count"), [(10, 30_000), (30_000, 300)])
def test_remembered_decisions_are_bounded_in_bytes(length: int, count: int) -> None:
    decides = authorizer()
    sizes = []
    for number in range(count):
        decides.may(ALICE, READ, TOPIC, f"{number:0{length}}")
        sizes.append(decides._remembered_bytes)
        if number % 100 == 0:
            assert sum(len(key[3]) for key in decides._decisions) <= sizes[-1]
    assert max(sizes) <= MAX_REMEMBERED_BYTES
    assert sizes[-1] < max(sizes), "all were forgotten once"
    assert decides._decisions


def test_all_rules_are_looked_at_once_for_a_right_on_any_resource(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decides = authorizer(*(rule(f"topic-{number}") for number in range(100)))
    asked = 0
    original = Authorizer._decide_on_any

    def counted(self: Authorizer, *arguments: object) -> bool:
        nonlocal asked
        asked += 1
        return original(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Authorizer, "_decide_on_any", counted)
    for _ in range(5):
        assert decides.may_on_any(ALICE, READ, TOPIC)
        assert not decides.may_on_any(ALICE, WRITE, TOPIC)
    assert asked == 2


class CountedName(str):
    """A name that counts how many parts of it were taken."""

    __slots__ = ("cuts",)

    def __new__(cls, text: str) -> "CountedName":
        name = super().__new__(cls, text)
        name.cuts = 0
        return name

    def __getitem__(self, part: object) -> str:
        self.cuts += 1
        return super().__getitem__(part)  # type: ignore[index]


def test_a_look_up_cuts_only_prefixes_of_lengths_that_a_rule_has() -> None:
    names = ("bobs-", "bills", "orders-of-", "x" * 40_000)
    decides = authorizer(*(rule(name, pattern=PREFIXED) for name in names))
    for text, cuts in (("y" * 32_000, 2), ("bobs-1", 1), ("b", 0)):
        name = CountedName(text)
        decides.may(ALICE, READ, TOPIC, name)
        assert name.cuts == cuts
    other_kind = CountedName("y" * 32_000)
    decides.may(ALICE, READ, GROUP, other_kind)
    assert other_kind.cuts == 0


@pytest.mark.parametrize(
    ("asked", "is_match"),
    [
        (AclFilter(), True),
        (AclFilter(resource_name="orders"), False),
        (AclFilter(resource_name="orders", pattern_type=PatternType.MATCH), True),
        (AclFilter(resource_name="ord"), True),
        (AclFilter(resource_name="ord", pattern_type=LITERAL), False),
        (AclFilter(resource_name="or", pattern_type=PatternType.MATCH), False),
        (AclFilter(resource_type=GROUP), False),
        (AclFilter(principal="User:bob"), False),
        (AclFilter(host="*", operation=READ, permission_type=ALLOW), True),
        (AclFilter(operation=WRITE), False),
        (AclFilter(permission_type=DENY), False),
    ],
)
def test_a_filter_matches_what_kafkas_does(asked: AclFilter, is_match: bool) -> None:
    assert asked.matches(rule("ord", pattern=PREFIXED)) is is_match
