"""Find and read the files of `schemas/`.

A schema is named by its path without the version: `orders/order_event`.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parents[2] / "schemas"

Schema = dict[str, Any]


def load_text(name: str, version: int = 1) -> str:
    """Return the text of one schema file; raise FileNotFoundError for an unknown one."""
    return (_FOLDER / f"{name}.v{version}.avsc").read_text()


@cache
def load(name: str, version: int = 1) -> Schema:
    """Return one schema as JSON; callers share the object and must not change it."""
    schema: Schema = json.loads(load_text(name, version))
    return schema


def names() -> list[str]:
    """Return the name of every event that has a version 1."""
    return sorted(
        str(path.relative_to(_FOLDER)).removesuffix(".v1.avsc")
        for path in _FOLDER.glob("*/*.v1.avsc")
    )
