"""The table of transitions, the tally, the requests that are pending."""

import re
from typing import get_args

from broker.raft import roles
from broker.raft.requests import Requests
from broker.raft.roles import TRANSITIONS, Role, Tally

NAMES = [role.__name__ for role in get_args(Role)]


def test_the_table_in_the_docstring_is_the_one_that_is_checked():
    drawn, source = set(), ""
    for line in roles.__doc__.splitlines():
        found = re.match(r"    (\w+)? +(\w+)  ", line)
        if found and found[2] in NAMES and line.startswith("    "):
            source = found[1] or source
            drawn.add((source, found[2]))
    allowed = {
        (source.__name__, target.__name__)
        for source, targets in TRANSITIONS.items()
        for target in targets
    }
    assert drawn == allowed


def test_every_role_is_in_the_table():
    assert {role.__name__ for role in TRANSITIONS} == set(NAMES)


def test_only_a_candidate_becomes_leader_and_only_after_a_pre_vote():
    assert [s.__name__ for s, targets in TRANSITIONS.items() if roles.Leader in targets] == [
        "Candidate"
    ]
    assert [s.__name__ for s, targets in TRANSITIONS.items() if roles.Candidate in targets] == [
        "Prospective"
    ]


def test_a_tally_of_five_is_won_with_three_and_lost_with_three():
    tally = Tally((1, 2, 3, 4, 5), granted={1})
    tally.note(2, is_granted=True)
    tally.note(4, is_granted=False)
    tally.note(4, is_granted=True)
    assert (tally.is_won, tally.is_lost, tally.unanswered) == (False, False, [3, 5])
    tally.note(5, is_granted=False)
    assert not tally.is_lost
    tally.note(3, is_granted=False)
    assert tally.is_lost


def test_a_tally_of_four_needs_three():
    tally = Tally((1, 2, 3, 4), granted={1, 2})
    assert not tally.is_won
    tally.note(3, is_granted=False)
    assert not tally.is_lost
    tally.note(4, is_granted=False)
    assert tally.is_lost


def test_a_voter_that_is_not_one_is_not_counted():
    tally = Tally((1, 2, 3), granted={1})
    tally.note(9, is_granted=True)
    assert not tally.is_won


def test_an_answer_counts_once_and_only_for_the_pending_request():
    requests = Requests(next_correlation_id=5, timeout_ms=100)
    first = requests.start(2, now_ms=0)
    assert requests.free_at_ms(2) == 100
    second = requests.start(2, now_ms=100)
    assert not requests.finish(2, first)
    assert not requests.finish(3, second)
    assert requests.finish(2, second)
    assert not requests.finish(2, second)
    assert requests.free_at_ms(2) == 0
    requests.back_off(2, 130)
    assert requests.free_at_ms(2) == 130
