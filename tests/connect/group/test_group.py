"""The assignor: rounds by hand, then whole histories by seeds; and the bytes of the protocol."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.group.assignor import Assignor
from connect.group.protocol import (
    GroupAssignment,
    Metadata,
    ProtocolError,
    Share,
    decode_assignment,
    decode_metadata,
    encode_assignment,
    encode_metadata,
    union,
)
from connect.herder.names import TaskId

SEEDS = range(60)


def share(connectors: str = "", tasks: str = "") -> Share:
    """`share("a b", "a-0 a-1")`"""
    found = [TaskId.parse(each) for each in tasks.split()]
    return Share(frozenset(connectors.split()), frozenset(each for each in found if each))


ALL = share("a b", "a-0 a-1 b-0 b-1")


def test_a_first_worker_gets_everything() -> None:
    decided = Assignor(1000).assign(ALL, {"m1": Share()}, 0)
    assert decided.assigned == {"m1": ALL}
    assert decided.delay_ms == 0


def test_a_second_worker_gets_half_in_two_rounds() -> None:
    assignor = Assignor(1000)
    assignor.assign(ALL, {"m1": Share()}, 0)
    first = assignor.assign(ALL, {"m1": ALL, "m2": Share()}, 1)
    assert first.assigned == {"m1": Share(), "m2": Share()}
    assert first.revoked["m1"] == share("b", "b-0 b-1")
    second = assignor.assign(ALL, {"m1": ALL - first.revoked["m1"], "m2": Share()}, 2)
    assert second.assigned["m2"] == share("b", "b-0 b-1")
    assert not union(second.revoked.values())


def test_what_a_lost_worker_ran_waits_and_then_goes_to_the_others() -> None:
    assignor = Assignor(1000)
    halves = {"m1": share("a", "a-0 a-1"), "m2": share("b", "b-0 b-1")}
    assignor.assign(ALL, {"m1": Share(), "m2": Share()}, 0)
    waiting = assignor.assign(ALL, {"m1": halves["m1"]}, 10)
    assert not union(waiting.assigned.values())
    assert waiting.delay_ms == 1000
    still = assignor.assign(ALL, {"m1": halves["m1"]}, 510)
    assert still.delay_ms == 500
    assert not union(still.assigned.values())
    after = assignor.assign(ALL, {"m1": halves["m1"]}, 1010)
    assert after.assigned["m1"] == halves["m2"]


def test_a_worker_that_comes_back_gets_its_work_at_once_and_nothing_else_moves() -> None:
    assignor = Assignor(300_000)
    first = assignor.assign(ALL, {"m1": Share(), "m2": Share()}, 0).assigned
    assignor.assign(ALL, {"m1": first["m1"]}, 10)
    back = assignor.assign(ALL, {"m1": first["m1"], "m3": Share()}, 20)
    assert back.assigned == {"m1": Share(), "m3": first["m2"]}
    assert not union(back.revoked.values())
    assert back.delay_ms == 0


def test_what_is_new_is_given_while_what_is_lost_waits() -> None:
    assignor = Assignor(1000)
    assignor.assign(ALL, {"m1": Share(), "m2": Share()}, 0)
    more = ALL | share("c", "c-0")
    decided = assignor.assign(more, {"m1": share("a", "a-0 a-1")}, 10)
    assert decided.assigned["m1"] == share("c", "c-0")


def test_what_is_configured_no_longer_or_runs_twice_is_taken_away() -> None:
    assignor = Assignor(0)
    members = {"m1": share("a", "a-0 a-1"), "m2": share("b gone", "b-0 a-1 b-1")}
    decided = assignor.assign(ALL, members, 0)
    assert decided.revoked["m1"] == share("", "a-1")
    assert decided.revoked["m2"] == share("gone", "a-1")
    assert not union(decided.assigned.values())


def test_balancing_again_and_again_is_put_off() -> None:
    assignor = Assignor(300_000)
    many = Share(frozenset(), frozenset(TaskId("c", each) for each in range(12)))
    assignor.assign(many, {"m1": Share()}, 0)
    assert union(assignor.assign(many, {"m1": many, "m2": Share()}, 1).revoked.values())
    put_off = assignor.assign(many, {"m1": many, "m2": Share(), "m3": Share()}, 2)
    assert not union(put_off.revoked.values())
    assert put_off.delay_ms == 40


class Cluster:
    """Plays workers that come, go, stop what they are told and run what they are given."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now_ms = 0
        self.assignor = Assignor(self.random.choice([0, 50, 1000]))
        self.running: dict[str, Share] = {}
        self.configured = Share()
        self.names = 0

    def add(self) -> None:
        self.names += 1
        self.running[f"m{self.names:03}"] = Share()

    def lose(self) -> None:
        if len(self.running) > 1:
            del self.running[self.random.choice(sorted(self.running))]

    def configure(self) -> None:
        name = f"c{self.random.randrange(5)}"
        tasks = {task for task in self.configured.tasks if task.connector == name}
        self.configured -= Share(frozenset({name}), frozenset(tasks))
        if self.random.random() < 0.7:
            count = self.random.randrange(6)
            made = frozenset(TaskId(name, each) for each in range(count))
            self.configured |= Share(frozenset({name}), made)

    def rebalance(self) -> int:
        """Play a round; returns its delay. Nobody has a thing that another one has."""
        before = dict(self.running)
        decided = self.assignor.assign(self.configured, self.running, self.now_ms)
        owned = union(before.values())
        for name, new in decided.assigned.items():
            assert not new & owned, "given away while somebody runs it"
            assert not decided.revoked[name] - before[name], "taken from who does not have it"
            self.running[name] = before[name] - decided.revoked[name] | new
            owned |= new
        counted = sum(len(each.tasks) for each in self.running.values())
        assert counted == len(union(self.running.values()).tasks), "it runs twice"
        self.revoked = union(decided.revoked.values())
        return decided.delay_ms

    def settle(self) -> None:
        """Play rounds, as long as one asks for another; then everything runs, in equal parts."""
        for _ in range(30):
            delay_ms = self.rebalance()
            if not delay_ms and not self.revoked:
                break
            self.now_ms += delay_ms
        else:
            raise AssertionError("it never comes to rest")
        assert union(self.running.values()) == self.configured
        for kind in ("connectors", "tasks"):
            sizes = [len(getattr(each, kind)) for each in self.running.values()]
            assert max(sizes) - min(sizes) <= 1, sizes


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_runs_twice_and_in_the_end_everything_runs_in_equal_parts(seed: int) -> None:
    cluster = Cluster(seed)
    cluster.add()
    for _ in range(60):
        change = cluster.random.choice(
            [cluster.add, cluster.lose, cluster.configure, cluster.configure, cluster.settle]
        )
        change()
        cluster.rebalance()
        cluster.now_ms += cluster.random.randrange(100)
    cluster.settle()
    # At rest, a round moves nothing.
    cluster.rebalance()
    assert not cluster.revoked


@pytest.mark.parametrize("seed", SEEDS)
def test_a_rebalance_moves_only_what_it_must(seed: int) -> None:
    cluster = Cluster(seed)
    for _ in range(4):
        cluster.add()
    for _ in range(12):
        cluster.configure()
    cluster.settle()
    before = dict(cluster.running)
    cluster.add()
    cluster.settle()
    moved = sum(len((before[name] - cluster.running[name]).tasks) for name in before)
    # No more than the newcomer's part.
    assert moved <= len(cluster.configured.tasks) // 5 + 1


shares = st.builds(
    Share,
    st.frozensets(st.text(max_size=5), max_size=4),
    st.frozensets(st.builds(TaskId, st.text(max_size=5), st.integers(0, 99)), max_size=6),
)
assignments = st.builds(
    GroupAssignment,
    st.text(min_size=1, max_size=9),
    st.text(max_size=20),
    st.integers(-1, 1 << 40),
    shares,
    shares,
    st.integers(0, 1 << 30),
    st.integers(0, 1),
)


@given(assignments, st.sampled_from([1, 2]))
def test_what_is_written_is_read(assignment: GroupAssignment, version: int) -> None:
    assert decode_assignment(encode_assignment(assignment, version)) == assignment
    metadata = Metadata("http://here:1/", 7, assignment)
    assert decode_metadata(encode_metadata(metadata, version)) == metadata


@given(assignments, st.data())
def test_what_is_cut_off_is_refused(assignment: GroupAssignment, data: st.DataObject) -> None:
    encoded = encode_metadata(Metadata("http://here:1/", 7, assignment), 1)
    cut = encoded[: data.draw(st.integers(0, len(encoded) - 1))]
    try:
        # What misses its whole end is a member of an older version.
        assert decode_metadata(cut).current is None
    except ProtocolError:
        pass


def test_bytes_are_those_of_kafkas_worker() -> None:
    """As Apache Kafka 4.3.1 writes them."""
    assignment = GroupAssignment("m1", "http://h:1/", 5, share("c", "c-0 c-1"), Share(), 0)
    assert encode_assignment(assignment, 2).hex() == (
        "000200000002"
        "6d31" + "000b" + b"http://h:1/".hex() + "0000000000000005"
        "00000001" + "0001" + "63" + "00000003" + "ffffffff" + "00000000" + "00000001"
        "00000000" + "00000000"
    )
