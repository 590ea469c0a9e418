"""The addresses at which voters are asked for their votes."""

from broker.raft.voter_search import VoterSearch

SERVERS = (("a", 1), ("b", 2))


def addresses(search: VoterSearch, count: int, *, is_wide: bool = True) -> list[object]:
    found = []
    for _ in range(count):
        search.aim(3, is_wide=is_wide)
        found.append(search.detour_of(3))
    return found


def test_each_second_attempt_goes_to_a_bootstrap_server():
    assert addresses(VoterSearch(SERVERS), 5) == [None, ("b", 2), None, ("a", 1), None]


def test_with_a_leader_not_long_ago_only_the_own_address_is_asked():
    assert addresses(VoterSearch(SERVERS), 4, is_wide=False) == [None] * 4
    assert addresses(VoterSearch(()), 4) == [None] * 4


def test_a_voter_is_asked_again_where_it_has_answered():
    search = VoterSearch(SERVERS)
    assert addresses(search, 2)[-1] == ("b", 2)
    search.note(3, is_found=True)
    assert addresses(search, 1) == [("b", 2)]
    # It has not answered this time: the search goes on.
    assert addresses(search, 2) == [None, ("a", 1)]


def test_another_node_at_that_address_is_not_asked_again():
    search = VoterSearch(SERVERS)
    addresses(search, 2)
    search.note(3, is_found=True)
    search.note(3, is_found=False)
    assert addresses(search, 1) == [None]
