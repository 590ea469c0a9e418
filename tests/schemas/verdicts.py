"""Reads lists of verdicts: pairs of schemas, and what stands between them."""

from pathlib import Path
from typing import NamedTuple


class Verdict(NamedTuple):
    """Two schemas, and the differences that make them incompatible in each direction."""

    old: str
    new: str
    backward: list[str]
    forward: list[str]


def read_verdicts(name: str) -> list[Verdict]:
    text = Path(__file__).with_name(name).read_text()
    blocks = [block.split("\n") for block in text.strip().split("\n\n")[1:]]
    return [
        Verdict(old, new, _listed(backward, "BACKWARD:"), _listed(forward, "FORWARD:"))
        for old, new, backward, forward in blocks
    ]


def _listed(line: str, label: str) -> list[str]:
    assert line.startswith(label), line
    rest = line.removeprefix(label).strip()
    return rest.split(", ") if rest else []
