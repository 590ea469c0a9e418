"""The state table, cell by cell, and how every state answers."""

import pytest

from broker.coordinator.classic_group.classic_group import (
    TRANSITIONS,
    ClassicGroup,
    GroupEvent,
    GroupState,
)
from broker.coordinator.classic_group.liveness import ANSWER_TO_HEARTBEAT
from common.kafka.errors import ErrorCode
from tests.lib.group_scenario import Scenario

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = GroupState
REBALANCE, JOINED, EMPTIED, ASSIGNED, REMOVED = GroupEvent

# One row a state, one column an event: where it leads, or None where it must not happen.
TABLE = {
    #            REBALANCE  JOINED      EMPTIED ASSIGNED REMOVED
    EMPTY:      (PREPARING, None,       None,   None,    DEAD),
    PREPARING:  (None,      COMPLETING, EMPTY,  None,    DEAD),
    COMPLETING: (PREPARING, None,       None,   STABLE,  DEAD),
    STABLE:     (PREPARING, None,       None,   None,    DEAD),
    DEAD:       (None,      None,       None,   None,    None),
}  # fmt: skip
CELLS = [
    (state, event, target)
    for state, row in TABLE.items()
    for event, target in zip(GroupEvent, row, strict=True)
]


@pytest.mark.parametrize(("state", "event", "target"), CELLS)
def test_every_cell_of_the_state_table(state, event, target):
    group = ClassicGroup("g", state=state)
    assert group.can(event) is (target is not None)
    if target is None:
        with pytest.raises(AssertionError):
            group.move(event, 5)
        assert group.state is state
    else:
        group.move(event, 5)
        assert (group.state, group.previous_state) == (target, state)
        assert group.current_state_timestamp_ms == 5


def test_the_table_in_the_code_has_no_other_cells():
    assert {state: set(row) for state, row in TRANSITIONS.items()} == {
        state: {event for event, target in zip(GroupEvent, row, strict=True) if target}
        for state, row in TABLE.items()
    }


def group_in(state):
    """A scenario with a member (of generation 1, if there is one) whose group is in `state`."""
    scenario = Scenario()
    client = scenario.client(session_timeout_ms=100_000)
    if state is EMPTY:
        (leaver,) = scenario.stable_group(1)
        leaver.leave()
        client.generation_id, client.member_id = 2, "nobody"
        return scenario, client
    client.join()
    scenario.advance(3_000)
    client.joined()
    if state is COMPLETING:
        return scenario, client
    client.sync()
    client.synced()
    if state is PREPARING:
        scenario.client().join()
    assert scenario.group.state is state
    return scenario, client


LIVING = [EMPTY, PREPARING, COMPLETING, STABLE]
NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID
AGAIN = ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("state", LIVING)
def test_every_state_answers_a_heartbeat_by_its_table(state):
    _, client = group_in(state)
    assert client.heartbeat() is ANSWER_TO_HEARTBEAT[state]


@pytest.mark.parametrize(
    ("state", "code"),
    [(EMPTY, UNKNOWN), (PREPARING, NONE), (COMPLETING, AGAIN), (STABLE, NONE)],
)
def test_every_state_answers_a_members_commit(state, code):
    _, client = group_in(state)
    assert client.commit(5) is code


@pytest.mark.parametrize(
    ("state", "code"),
    [(EMPTY, NONE), (PREPARING, UNKNOWN), (COMPLETING, UNKNOWN), (STABLE, UNKNOWN)],
)
def test_every_state_answers_a_simple_consumers_commit(state, code):
    scenario, _ = group_in(state)
    assert scenario.commit({("t", 0): 5}) == {("t", 0): code}


@pytest.mark.parametrize(
    ("state", "code"),
    [(EMPTY, UNKNOWN), (PREPARING, AGAIN), (COMPLETING, NONE), (STABLE, NONE)],
)
def test_every_state_answers_the_leaders_sync(state, code):
    _, client = group_in(state)
    client.sync()
    assert client.sync_error() is code


@pytest.mark.parametrize(
    ("state", "code"), [(EMPTY, UNKNOWN), (PREPARING, NONE), (COMPLETING, NONE), (STABLE, NONE)]
)
def test_every_state_lets_a_member_leave(state, code):
    scenario, client = group_in(state)
    assert client.leave() is code
    assert client.member_id not in scenario.group.members


@pytest.mark.parametrize("state", LIVING)
def test_every_state_lets_a_new_member_in(state):
    scenario, _ = group_in(state)
    newcomer = scenario.client()
    newcomer.join()
    assert newcomer.member_id in scenario.group.members
    assert scenario.group.state is PREPARING


@pytest.mark.parametrize("state", LIVING)
def test_no_state_lets_an_unknown_member_id_in(state):
    scenario, _ = group_in(state)
    stranger = scenario.client()
    stranger.member_id = "stranger"
    stranger.join()
    assert stranger.join_error() is UNKNOWN
