"""How fast connections are accepted: at each listener, in all, and from one address."""

import pytest

from broker.quotas import connection_rates
from broker.quotas.accounts import Windows
from broker.quotas.client_quotas import AddressQuotas, quota_entity
from broker.quotas.connection_rates import ConnectionRates
from broker.quotas.rate import TokenBucket

NO_LIMIT = 2**31 - 1


def rates(every: int = NO_LIMIT, clients: int = NO_LIMIT) -> ConnectionRates:
    made = ConnectionRates(Windows(), "BETWEEN")
    made.limit({"": every, "CLIENTS": clients, "BETWEEN": NO_LIMIT})
    return made


def accepted_in_a_minute(made: ConnectionRates, listener: str) -> int:
    now_ms = count = 0
    while now_ms < 60_000:
        count += 1
        now_ms += max(1, made.pause_ms(listener, now_ms))
    return count


def test_a_listener_accepts_as_many_as_its_rate_allows() -> None:
    assert accepted_in_a_minute(rates(clients=20), "CLIENTS") == pytest.approx(1_200, rel=0.05)


def test_the_brokers_rate_is_for_its_listeners_together_and_not_for_other_brokers() -> None:
    assert accepted_in_a_minute(rates(every=20), "CLIENTS") == pytest.approx(1_200, rel=0.05)
    assert accepted_in_a_minute(rates(every=20), "BETWEEN") == 60_000


def test_an_address_above_its_rate_is_refused_and_others_are_not() -> None:
    made = rates()
    limit = {"connection_creation_rate": 10.0}
    made.limit_addresses(AddressQuotas({quota_entity({"ip": "10.0.0.1"}): limit}))
    admitted = {"10.0.0.1": 0, "10.0.0.2": 0}
    for now_ms in range(0, 60_000, 20):
        for host in admitted:
            admitted[host] += not made.refuse_ms(host, now_ms)
    assert admitted["10.0.0.1"] == pytest.approx(600, rel=0.05)
    assert admitted["10.0.0.2"] == 3_000


def test_the_number_of_addresses_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_rates, "MAX_ADDRESSES", 10)
    made = rates()
    made.limit_addresses(
        AddressQuotas({quota_entity({"ip": None}): {"connection_creation_rate": 1.0}})
    )
    for number in range(100):
        made.refuse_ms(f"10.0.0.{number}", 0)
    assert [address for address, _ in made.of_addresses(0)] == [
        f"10.0.0.{number}" for number in range(99, 89, -1)
    ]
    made.limit_addresses(AddressQuotas({}))
    assert not list(made.of_addresses(0))


def test_a_bucket_lets_the_largest_request_pass_and_those_after_it_wait() -> None:
    bucket = TokenBucket(2.0, windows_ms=11_000, now_ms=0)
    assert bucket.tokens(0) == 22
    bucket.record(1_000, 0)
    assert bucket.excess_ms(0) == 489_000
    assert bucket.excess_ms(489_000) == 0
    assert bucket.tokens(3_600_000) == 22


def test_tokens_that_were_not_used_are_given_back() -> None:
    bucket = TokenBucket(1.0, windows_ms=1_000, now_ms=0)
    bucket.record(5, 0)
    bucket.record(-5, 0)
    assert bucket.tokens(0) == 1
    bucket.record(-5, 0)
    assert bucket.tokens(0) == 1


def test_a_changed_rate_counts_from_then_on() -> None:
    bucket = TokenBucket(1.0, windows_ms=10_000, now_ms=0)
    bucket.record(20, 0)
    bucket.change(10.0, 5_000)
    assert bucket.excess_ms(5_000) == 500
