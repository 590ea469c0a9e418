"""What other brokers got wrong, as conversations: each finding is a transcript of its own.

`REWRITE=1` writes what happens now; read the diff.
"""

import os
from pathlib import Path

import pytest

from tests.lib.transaction_transcript import Player

FOLDER = Path(__file__).parent / "transaction_transcripts"
TRANSCRIPTS = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_a_finding_is_not_ours(path):
    played = Player().play(path.read_text())
    if os.environ.get("REWRITE"):
        path.write_text(played)
    assert played == path.read_text()


def test_there_are_transcripts():
    assert len(TRANSCRIPTS) >= 9
