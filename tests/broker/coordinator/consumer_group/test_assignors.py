"""The assignors: complete, balanced, sticky, whatever the members subscribe to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.coordinator.consumer_group.assignors import range as range_assignor
from broker.coordinator.consumer_group.assignors import uniform
from broker.coordinator.consumer_group.assignors.spec import MemberSpec, make_spec
from tests.lib.logs import last_of

ASSIGNORS = {"uniform": uniform.assign, "range": range_assignor.assign}
TOPICS = [bytes([number]) * 16 for number in range(1, 5)]


@st.composite
def groups(draw, *, is_homogeneous=None):
    """Members with subscriptions, and partition counts."""
    counts = {topic: draw(st.integers(1, 9)) for topic in TOPICS}
    ids = [f"m{number}" for number in range(draw(st.integers(1, 6)))]
    subsets = st.frozensets(st.sampled_from(TOPICS), min_size=1)
    if is_homogeneous or (is_homogeneous is None and draw(st.booleans())):
        topics = draw(subsets)
        return dict.fromkeys(ids, topics), counts
    return {each: draw(subsets) for each in ids}, counts


def assigned(name, subscriptions, counts, targets=None):
    """Run an assignor; what it gives is checked for what must hold always."""
    members = {
        member_id: MemberSpec(topics, (targets or {}).get(member_id, {}))
        for member_id, topics in subscriptions.items()
    }
    spec = last_of(make_spec(members, counts_of(subscriptions, counts)))
    result = last_of(ASSIGNORS[name](spec))
    assert result.keys() == subscriptions.keys()
    owned = partitions(result)
    assert len(owned) == len(set(owned)), "a partition is given twice"
    assert set(owned) == {
        (topic, index)
        for topic in set().union(*subscriptions.values())
        for index in range(counts[topic])
    }, "every partition of a subscribed topic is given"
    for member_id, target in result.items():
        assert set(target) <= subscriptions[member_id], "to members that subscribe"
        assert all(target.values()), "no empty sets"
    return result


def counts_of(subscriptions, counts):
    return {topic: counts[topic] for topic in set().union(*subscriptions.values())}


def partitions(targets):
    return [
        (topic, index)
        for target in targets.values()
        for topic, some in target.items()
        for index in some
    ]


def size(target):
    return sum(map(len, target.values()))


def moved(before, after):
    """How many partitions have another owner, of those that had one that is still there."""
    owners = {
        (topic, index): member_id
        for member_id, target in after.items()
        for topic, some in target.items()
        for index in some
    }
    return sum(
        owners.get((topic, index), member_id) != member_id
        for member_id, target in before.items()
        if member_id in after
        for topic, some in target.items()
        for index in some
    )


def check_uniform_balance(subscriptions, counts, result):
    """No partition could go to a subscriber that would still have less than its owner."""
    for member_id, topics in subscriptions.items():
        for owner_id, target in result.items():
            if topics & target.keys():
                assert size(target) - size(result[member_id]) <= 1, (member_id, owner_id)


def check_range_balance(subscriptions, counts, result):
    """Of each topic, nobody has more than one partition more than any other subscriber."""
    for topic in counts_of(subscriptions, counts):
        sizes = [
            len(result[member_id].get(topic, ()))
            for member_id, topics in subscriptions.items()
            if topic in topics
        ]
        assert max(sizes) - min(sizes) <= 1


CHECKS = {"uniform": check_uniform_balance, "range": check_range_balance}


@pytest.mark.parametrize("name", ASSIGNORS)
@given(group=groups())
def test_an_assignment_is_complete_and_balanced(name, group):
    CHECKS[name](*group, assigned(name, *group))


@pytest.mark.parametrize("name", ASSIGNORS)
@given(group=groups())
def test_nothing_moves_when_nothing_has_changed(name, group):
    first = assigned(name, *group)
    assert assigned(name, *group, targets=first) == first


@pytest.mark.parametrize("name", ASSIGNORS)
@given(group=groups(), change=groups())
def test_an_assignment_is_complete_and_balanced_after_any_change(name, group, change):
    first = assigned(name, *group)
    CHECKS[name](*change, assigned(name, *change, targets=first))


@given(group=groups(is_homogeneous=True))
def test_uniform_moves_only_what_a_new_member_gets(group):
    subscriptions, counts = group
    first = assigned("uniform", subscriptions, counts)
    grown = {**subscriptions, "new": next(iter(subscriptions.values()))}
    second = assigned("uniform", grown, counts, targets=first)
    assert moved(first, second) == size(second["new"])


@given(group=groups(is_homogeneous=True))
def test_uniform_moves_nothing_of_those_who_stay_when_a_member_leaves(group):
    subscriptions, counts = group
    first = assigned("uniform", subscriptions, counts)
    if len(subscriptions) == 1:
        return
    rest = dict(list(subscriptions.items())[1:])
    assert moved(first, assigned("uniform", rest, counts, targets=first)) == 0


def test_range_gives_the_same_partitions_of_topics_of_equal_size():
    counts = dict.fromkeys(TOPICS[:2], 6)
    subscriptions = dict.fromkeys(["a", "b", "c"], frozenset(counts))
    for target in assigned("range", subscriptions, counts).values():
        assert target[TOPICS[0]] == target[TOPICS[1]]


def test_targets_that_share_a_partition_are_mended():
    counts = {TOPICS[0]: 3}
    subscriptions = dict.fromkeys(["a", "b"], frozenset(counts))
    doubled = {TOPICS[0]: frozenset({0, 1, 7})}
    targets = {"a": doubled, "b": doubled}
    for name in ASSIGNORS:
        assigned(name, subscriptions, counts, targets)
