"""A cache with a limit in bytes that drops the least recently used entry."""

from hypothesis import given
from hypothesis import strategies as st

from common.process.bounded_cache import BoundedCache


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 120))))
def test_a_cache_never_holds_more_than_its_limit(puts: list[tuple[int, int]]) -> None:
    cache: BoundedCache[int, int] = BoundedCache(100)
    weights: dict[int, int] = {}
    for key, weight in puts:
        cache.put(key, weight, weight)
        assert cache.get(key) == (weight if weight <= 100 else None)
        weights[key] = weight
        assert cache.size_bytes <= 100
    assert sum(weights[key] for key in weights if cache.get(key) == weights[key]) <= 100


def test_the_least_recently_used_entry_is_dropped() -> None:
    cache: BoundedCache[str, str] = BoundedCache(3)
    for key in ("a", "b", "c"):
        cache.put(key, key, 1)
    assert cache.get("a") == "a"
    cache.put("d", "d", 1)
    assert [key for key in "abcd" if cache.get(key)] == ["a", "c", "d"]
    cache.put("d", "large", 4)
    assert cache.get("d") is None
    assert cache.size_bytes == 2
