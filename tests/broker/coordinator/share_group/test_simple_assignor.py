"""The simple assignor: balanced, complete, and sticky."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from broker.coordinator.consumer_group.assignors.spec import MemberSpec
from broker.coordinator.consumer_group.member import Assignment
from broker.coordinator.share_group.simple_assignor import Assignable, assign

A, B, C = (name * 16 for name in (b"a", b"b", b"c"))


def assigned(members: dict[str, MemberSpec], assignable: Assignable) -> dict[str, Assignment]:
    steps = assign(members, assignable)
    try:
        while True:
            next(steps)
    except StopIteration as done:
        result: dict[str, Assignment] = done.value
        return result


def specs(
    count: int, *topics: bytes, before: dict[str, Assignment] | None = None
) -> dict[str, MemberSpec]:
    return {
        f"m{n:03}": MemberSpec(frozenset(topics), (before or {}).get(f"m{n:03}", {}))
        for n in range(count)
    }


def holders(targets: dict[str, Assignment]) -> Counter[tuple[bytes, int]]:
    return Counter(
        (topic, partition)
        for target in targets.values()
        for topic, partitions in target.items()
        for partition in partitions
    )


def test_with_enough_partitions_each_has_one_member() -> None:
    targets = assigned(specs(2, A, B), {A: range(3), B: range(2)})
    assert set(holders(targets).values()) == {1}
    assert sorted(sum(map(len, each.values())) for each in targets.values()) == [2, 3]


def test_with_more_members_each_partition_is_shared() -> None:
    targets = assigned(specs(7, A), {A: range(3)})
    assert sorted(holders(targets).values()) == [3, 3, 3]
    assert all(len(each[A]) in {1, 2} for each in targets.values())


def test_only_partitions_that_have_state_are_assigned() -> None:
    targets = assigned(specs(2, A, B), {A: [1, 5]})
    assert holders(targets) == {(A, 1): 1, (A, 5): 1}
    assert assigned(specs(2, A), {}) == {"m000": {}, "m001": {}}


def test_different_subscriptions_are_assigned_topic_by_topic() -> None:
    members = {
        "all": MemberSpec(frozenset({A, B}), {}),
        "only-a": MemberSpec(frozenset({A}), {}),
        "only-b": MemberSpec(frozenset({B}), {}),
    }
    targets = assigned(members, {A: range(2), B: range(1)})
    assert targets["only-a"].keys() <= {A}
    assert targets["only-b"] == {B: frozenset({0})}
    assert holders(targets) == {(A, 0): 1, (A, 1): 1, (B, 0): 2}


@st.composite
def groups(draw: st.DrawFn) -> tuple[dict[str, MemberSpec], Assignable]:
    assignable = {
        topic: sorted(draw(st.sets(st.integers(0, 9), max_size=8))) for topic in (A, B, C)
    }
    members = {}
    for n in range(draw(st.integers(0, 12))):
        topics = frozenset(draw(st.sets(st.sampled_from([A, B, C]), min_size=1)))
        before = {
            topic: frozenset(draw(st.sets(st.integers(0, 9), min_size=1, max_size=4)))
            for topic in draw(st.sets(st.sampled_from([A, B, C])))
        }
        members[f"m{n:03}"] = MemberSpec(topics, before)
    return members, assignable


@given(groups())
def test_every_partition_has_a_member_and_none_has_too_many(
    group: tuple[dict[str, MemberSpec], Assignable],
) -> None:
    members, assignable = group
    targets = assigned(members, assignable)
    assert targets.keys() == members.keys()
    counts = holders(targets)
    is_homogeneous = len({spec.topic_ids for spec in members.values()}) <= 1
    for topic, partitions in assignable.items():
        subscribers = [name for name, spec in members.items() if topic in spec.topic_ids]
        places = sum(
            len(assignable[each])
            for each in (
                members[subscribers[0]].topic_ids if is_homogeneous and subscribers else [topic]
            )
        )
        for partition in partitions:
            if subscribers:
                most = -(-len(subscribers) // places)
                assert 1 <= counts[topic, partition] <= most
    for name, target in targets.items():
        for topic, partitions in target.items():
            assert topic in members[name].topic_ids
            assert partitions <= set(assignable[topic])


@given(groups())
def test_an_assignment_that_is_made_again_is_the_same(
    group: tuple[dict[str, MemberSpec], Assignable],
) -> None:
    members, assignable = group
    first = assigned(members, assignable)
    again = {name: MemberSpec(spec.topic_ids, first[name]) for name, spec in members.items()}
    second = assigned(again, assignable)
    moved = sum(
        len(partitions - second[name].get(topic, frozenset()))
        for name, target in first.items()
        for topic, partitions in target.items()
    )
    assert moved == 0


def test_few_partitions_move_when_a_member_joins() -> None:
    before = assigned(specs(3, A), {A: range(12)})
    after = assigned(specs(4, A, before=before), {A: range(12)})
    kept = sum(len(before[name][A] & after[name][A]) for name in before)
    assert kept == 9
