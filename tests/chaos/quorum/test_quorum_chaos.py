"""One history of voters that change while nodes are killed."""

from pathlib import Path

import pytest

from tests.chaos.quorum.__main__ import LONGEST_PAUSE_SECONDS
from tests.chaos.quorum.run import QuorumChaos

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def test_voters_are_exchanged_while_nodes_are_killed(tmp_path: Path) -> None:
    told: list[str] = []
    chaos = QuorumChaos(tmp_path, 1, told.append)
    chaos.run(is_short=True)
    longest = max(chaos.topics.pauses)
    assert longest[0] < LONGEST_PAUSE_SECONDS, (longest, told)
