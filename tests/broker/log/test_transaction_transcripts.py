"""What other brokers got wrong at the leaders: each finding is a conversation of its own.

`REWRITE=1` writes what happens now; read the diff.
"""

import os
from pathlib import Path

import pytest

from tests.lib.leader_transcript import Player

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_a_finding_is_not_ours(path: Path) -> None:
    played = Player().play(path.read_text())
    if os.environ.get("REWRITE"):
        path.write_text(played)
    assert played == path.read_text()


def test_there_are_transcripts() -> None:
    assert len(TRANSCRIPTS) >= 10
