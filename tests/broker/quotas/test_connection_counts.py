"""Which listeners have room, and which addresses have too many connections."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from broker.quotas.connection_counts import ConnectionCounts, ConnectionLimits

CLIENTS, BETWEEN = "CLIENTS", "BETWEEN"
ADDRESSES = ["10.0.0.1", "10.0.0.2"]


def counts(limits: ConnectionLimits, *listeners: str) -> ConnectionCounts:
    return ConnectionCounts(limits, listeners, BETWEEN)


def test_the_limit_is_that_of_all_listeners_together() -> None:
    both = counts(ConnectionLimits(2), CLIENTS, "OTHERS", BETWEEN)
    both.add(CLIENTS, "a")
    assert both.has_room("OTHERS")
    both.add("OTHERS", "a")
    assert not both.has_room(CLIENTS)
    assert not both.has_room("OTHERS")
    both.remove(CLIENTS, "a")
    assert both.has_room("OTHERS")


def test_brokers_have_room_when_clients_have_taken_all_of_it() -> None:
    both = counts(ConnectionLimits(2), CLIENTS, BETWEEN)
    both.add(CLIENTS, "a")
    both.add(CLIENTS, "a")
    assert both.has_room(BETWEEN)
    both.add(BETWEEN, "b")
    assert both.excess == 1
    both.add(BETWEEN, "b")
    assert not both.has_room(BETWEEN), "its own number is limited too"


def test_a_listener_for_brokers_and_clients_is_not_protected() -> None:
    one = counts(ConnectionLimits(1), BETWEEN)
    one.add(BETWEEN, "a")
    assert not one.has_room(BETWEEN)
    assert not one.is_protected(BETWEEN)


def test_a_limit_of_one_listener() -> None:
    both = counts(ConnectionLimits(9, listeners={CLIENTS: 1}), CLIENTS, BETWEEN)
    both.add(CLIENTS, "a")
    assert not both.has_room(CLIENTS)
    assert both.has_room(BETWEEN)


@given(
    limit=st.integers(1, 3),
    own=st.none() | st.integers(1, 3),
    override=st.none() | st.integers(0, 3),
    connections=st.lists(
        st.tuples(st.sampled_from([CLIENTS, BETWEEN]), st.sampled_from(ADDRESSES))
    ),
)
def test_an_address_is_full_as_a_list_of_connections_says(
    limit: int, own: int | None, override: int | None, connections: list[tuple[str, str]]
) -> None:
    limits = ConnectionLimits(
        max_connections_per_ip=limit,
        overrides={} if override is None else {"10.0.0.1": override},
        listeners_per_ip={} if own is None else {CLIENTS: own},
    )
    real = counts(limits, CLIENTS, BETWEEN)
    admitted: list[tuple[str, str]] = []
    for listener, address in connections:
        most = override if override is not None and address == "10.0.0.1" else limit
        most_here = own if own is not None and listener == CLIENTS else most
        if override is not None and address == "10.0.0.1":
            most_here = override
        found = Counter(each for _, each in admitted)[address]
        found_here = Counter(admitted)[listener, address]
        is_full = found >= most or found_here >= most_here
        assert real.is_full_of(listener, address) == is_full
        if not is_full:
            real.add(listener, address)
            admitted.append((listener, address))
    assert real.total == len(admitted)
    for listener, address in admitted:
        real.remove(listener, address)
    assert real.total == 0
