"""What is named twice in a request."""

from broker.server.cluster.request_entries import distinct, merged


def test_the_first_of_every_key_is_kept_in_order() -> None:
    assert distinct(["b1", "a1", "b2", "a2"], lambda item: item[0]) == ["b1", "a1"]


def test_every_other_one_is_merged_into_the_first() -> None:
    items = [["b", 1], ["a", 2], ["b", 3]]
    kept = merged(items, lambda item: item[0], lambda first, other: first.append(other[1]))
    assert kept == [["b", 1, 3], ["a", 2]]
