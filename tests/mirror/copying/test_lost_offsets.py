"""Where the mirror goes on when the source refuses an offset, and what is missing then."""

import pytest

from millstream.mirror import TopicPartition
from mirror.copying.lost_offsets import Gap, Resumed, resumed_after_reset

AT = TopicPartition("orders", 3)


@pytest.mark.parametrize(
    ("position", "offsets", "skips_to_end", "offset", "missing"),
    [
        (5, (9, 20), False, 9, (5, 9)),
        (5, (6, 20), False, 6, (5, 6)),
        (5, (20, 20), False, 20, (5, 20)),
        # It is told to begin at the end, as auto.offset.reset=latest says.
        (5, (9, 20), True, 20, (5, 20)),
        # What the source had is gone, or it is another one.
        (50, (9, 20), False, 9, None),
        (50, (9, 20), True, 9, None),
        # The offset is there: it was refused for another reason.
        (12, (9, 20), False, 12, None),
        (20, (9, 20), True, 20, None),
        (0, (0, 0), False, 0, None),
    ],
)
def test_reading_goes_on_at_what_there_is(
    position: int,
    offsets: tuple[int, int],
    skips_to_end: bool,
    offset: int,
    missing: tuple[int, int] | None,
) -> None:
    gap = None if missing is None else Gap(AT, *missing)
    found = resumed_after_reset(AT, position, offsets, skips_to_end=skips_to_end)
    assert found == Resumed(offset, gap)


def test_a_gap_says_which_offsets_it_has() -> None:
    assert str(Gap(AT, 5, 9)) == "offsets 5 to 8 of orders-3"
    assert (str(Gap(AT, 5, 6)), Gap(AT, 5, 6).size) == ("offset 5 of orders-3", 1)
