"""Which quota a client has, whose rate it shares, and how many rates are kept."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.quotas import accounts as accounts_module
from broker.quotas.accounts import Accounts, Windows
from broker.quotas.client_quotas import (
    AddressQuotas,
    ClientQuotas,
    Holder,
    QuotaEntity,
    quota_entity,
)
from broker.quotas.rate import RateLimit

KEY = "producer_byte_rate"
USERS, CLIENTS = ("ann", "bob"), ("app", "web")
ABSENT = "absent"
KINDS = list(product((*USERS, None, ABSENT), (*CLIENTS, None, ABSENT)))[:-1]


def entity(user: str | None, client_id: str | None) -> QuotaEntity:
    parts = {"user": user, "client-id": client_id}
    return quota_entity({kind: name for kind, name in parts.items() if name != ABSENT})


def naive(limits: dict[QuotaEntity, float], user: str, client_id: str) -> float | None:
    """Kafka's documentation, line by line (Quotas, "Client quotas")."""
    for wanted in (
        (user, client_id),
        (user, None),
        (user, ABSENT),
        (None, client_id),
        (None, None),
        (None, ABSENT),
        (ABSENT, client_id),
        (ABSENT, None),
    ):
        if entity(*wanted) in limits:
            return limits[entity(*wanted)]
    return None


@given(st.dictionaries(st.sampled_from(KINDS), st.integers(1, 1_000)))
def test_the_first_entity_of_kafkas_order_counts(chosen: dict[tuple[str, str], int]) -> None:
    limits = {entity(*names): float(limit) for names, limit in chosen.items()}
    quotas = ClientQuotas({each: {KEY: limit} for each, limit in limits.items()})
    for user, client_id in product((*USERS, "eve"), (*CLIENTS, "")):
        found = quotas.find(KEY, user, client_id)
        assert (found and found.limit) == naive(limits, user, client_id)


@pytest.mark.parametrize(
    ("names", "holder"),
    [
        (("ann", ABSENT), Holder("ann", None)),
        ((None, ABSENT), Holder("ann", None)),
        (("ann", None), Holder("ann", "app")),
        ((None, "app"), Holder("ann", "app")),
        ((ABSENT, None), Holder(None, "app")),
    ],
)
def test_the_rate_belongs_to_the_names_that_the_entity_stands_for(
    names: tuple[str, str], holder: Holder
) -> None:
    found = ClientQuotas({entity(*names): {KEY: 1.0}}).find(KEY, "ann", "app")
    assert found is not None
    assert found.holder == holder


def test_each_quota_is_found_separately() -> None:
    quotas = ClientQuotas(
        {
            entity("ann", "app"): {"consumer_byte_rate": 1.0},
            entity("ann", ABSENT): {KEY: 2.0},
        }
    )
    found = quotas.find(KEY, "ann", "app")
    assert found is not None
    assert found.limit == 2.0


def new_accounts(quotas: dict[QuotaEntity, dict[str, float]]) -> Accounts:
    made = Accounts(Windows(), Windows())
    made.change(quotas, 0)
    return made


def test_clients_of_one_user_share_its_rate_and_others_have_none() -> None:
    accounts = new_accounts({entity("ann", ABSENT): {KEY: 5.0}})
    assert accounts.of("ann", "app", 0).producer is accounts.of("ann", "web", 0).producer
    assert accounts.of("bob", "app", 0).producer is None


def test_what_was_used_counts_under_a_new_limit() -> None:
    accounts = new_accounts({entity("ann", ABSENT): {KEY: 5.0}})
    before = accounts.of("ann", "app", 0).producer
    assert before is not None
    before.used.record(100, 0)
    accounts.change({entity("ann", ABSENT): {KEY: 50.0}}, 0)
    after = accounts.of("ann", "web", 0).producer
    assert after is before
    assert isinstance(after.used, RateLimit)
    assert after.used.limit_per_second == 50
    assert after.used.excess_ms(0) == 2_000


def test_a_quota_that_is_taken_away_holds_nobody() -> None:
    accounts = new_accounts({entity("ann", ABSENT): {KEY: 5.0}})
    accounts.of("ann", "app", 0)
    accounts.change({}, 0)
    assert accounts.is_empty
    assert not list(accounts.metered())
    assert accounts.of("ann", "app", 0).producer is None


def test_the_number_of_rates_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts_module, "MAX_RATES", 10)
    monkeypatch.setattr(accounts_module, "MAX_ACCOUNTS", 20)
    accounts = new_accounts({entity(ABSENT, None): {KEY: 5.0}})
    for number in range(100):
        accounts.of("ann", f"client-{number}", 0)
    shown = [metered.holder.client_id for metered in accounts.metered()]
    assert shown == [f"client-{number}" for number in range(99, 89, -1)]
    assert len(accounts._accounts) <= 20


def test_the_quota_of_an_address_is_found_in_each_spelling() -> None:
    rate = "connection_creation_rate"
    quotas = AddressQuotas(
        {
            quota_entity({"ip": "0:0::1"}): {rate: 3.0},
            quota_entity({"ip": "10.0.0.1"}): {rate: 4.0},
            quota_entity({"ip": None}): {rate: 5.0},
        }
    )
    assert [quotas.find(each) for each in ("::1", "10.0.0.1", "10.0.0.2")] == [3, 4, 5]


def test_long_names_take_little_memory_and_are_told_apart() -> None:
    accounts = new_accounts({entity(ABSENT, None): {KEY: 5.0}, entity(ABSENT, "x" * 1_000): {}})
    first, second = (accounts.of("ann", "x" * 30_000 + end, 0).producer for end in "ab")
    assert first is not None
    assert second is not None
    assert first is not second
    assert first is accounts.of("bob", "x" * 30_000 + "a", 0).producer
    held = [*accounts._accounts, *(metered.holder for metered in accounts.metered())]
    assert all(len(name or "") <= accounts_module.MAX_NAME_LENGTH for pair in held for name in pair)


def test_a_long_name_has_the_quota_of_its_entity() -> None:
    name = "x" * 30_000
    accounts = new_accounts({entity(ABSENT, name): {KEY: 5.0}, entity(ABSENT, None): {KEY: 6.0}})
    found = accounts.of("ann", name, 0).producer
    assert found is not None
    assert isinstance(found.used, RateLimit)
    assert found.used.limit_per_second == 5
