"""The servers that belong together, and the row of links between them.

Each server gets the list of all in `MILLSTREAM_NEIGHBOURS`, or in its own setting of that name:
`orders=http://...` and so on, separated by commas. A server without the list shows no row.
"""

from collections.abc import Mapping
from html import escape
from pathlib import Path

LOOK = Path(__file__).with_name("look.css")
_SCHEMES = ("http://", "https://")


def parse_neighbours(text: str) -> dict[str, str]:
    """Return URLs by name, in the order they are given. Raises ValueError."""
    found: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, separator, url = entry.partition("=")
        if not separator or not url.startswith(_SCHEMES):
            raise ValueError(f"not name=http://...: {entry}")
        found[name.strip()] = url
    return found


def navigation(neighbours: Mapping[str, str], own_name: str) -> str:
    """Return the row of links as HTML; its own server is among them, told apart."""
    if not neighbours:
        return ""
    links = "".join(
        f'<li><a href="{escape(url)}"{_marked(name == own_name)}>{escape(_in_words(name))}</a></li>'
        for name, url in neighbours.items()
    )
    return f'<nav aria-label="Servers"><ul>{links}</ul></nav>'


def _marked(is_own: bool) -> str:
    return ' aria-current="page"' if is_own else ""


def _in_words(name: str) -> str:
    return name.replace("_", " ").replace("-", " ")
