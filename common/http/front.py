"""The page that a server shows a browser at `/`: what it is, whether it is well, what to do next.

One document with nothing to load and no script: its style is within, and the content security
policy names it by its hash. A request that does not ask for HTML gets what it would get without
this page.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape

from common.http.neighbours import LOOK, navigation

HTML = "text/html"
_RELOAD_SECONDS = 2
_ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Crect x='1' y='8' width='3' height='7' rx='1' fill='%232a78c8'/%3E"
    "%3Crect x='6' y='4' width='3' height='11' rx='1' fill='%232a78c8'/%3E"
    "%3Crect x='11' y='1' width='3' height='14' rx='1' fill='%232a78c8'/%3E%3C/svg%3E"
)


@dataclass(frozen=True, slots=True)
class Link:
    """A page of this server, or of another, and what is there."""

    href: str
    name: str
    note: str


@dataclass(frozen=True, slots=True)
class Step:
    """What to do next; in the command {origin} is this server as the browser reaches it."""

    text: str
    command: str


PROBES = (
    Link("/health/ready", "/health/ready", "whether it can do its work, or what is missing"),
    Link("/health/live", "/health/live", "whether the process runs"),
    Link("/metrics", "/metrics", "what it counts, for Prometheus"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontPage:
    """What the page says of one server in every state."""

    name: str
    """As its neighbours call it."""
    title: str
    what: str
    steps: Sequence[Step] = ()
    links: Sequence[Link] = ()
    neighbours: Mapping[str, str] = field(default_factory=dict)


def is_wanted(accept: str | None) -> bool:
    """Tell whether a request with this Accept header comes from a browser."""
    return HTML in (accept or "")


def response_headers() -> dict[str, str]:
    """Return the headers that go with the page."""
    return {
        "Content-Security-Policy": (
            f"default-src 'none'; style-src '{_style_hash()}'; img-src data:; base-uri 'none'; "
            "form-action 'none'; frame-ancestors 'none'"
        ),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
        "Vary": "Accept",
    }


def render(
    page: FrontPage,
    *,
    origin: str,
    missing: Sequence[str] = (),
    facts: Mapping[str, str] | None = None,
) -> str:
    """Return the page as it is now; one that is not ready yet comes again by itself."""
    reload = f'<meta http-equiv="refresh" content="{_RELOAD_SECONDS}">' if missing else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
{reload}<title>{escape(page.title)} · Millstream</title>
<link rel="icon" href="{_ICON}">
<style>{_style()}</style>
</head>
<body class="narrow">
{navigation(page.neighbours, page.name)}
<header>
<h1>{escape(page.title)}</h1>
{badge(missing)}
</header>
<main>
<p class="what">{escape(page.what)}</p>
{_facts(facts or {})}{_steps(page.steps, origin)}{_links(page.links)}
</main>
</body>
</html>
"""


def badge(missing: Sequence[str]) -> str:
    """Return the mark that says whether a server is ready, or what it waits for."""
    if missing:
        waiting = escape("waiting for " + ", ".join(missing))
        return f'<p class="badge" role="status" data-state="stale">{waiting}</p>'
    return '<p class="badge" role="status" data-state="live">ready</p>'


def _facts(facts: Mapping[str, str]) -> str:
    if not facts:
        return ""
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items()
    )
    return f'<section><dl class="facts">{rows}</dl></section>\n'


def _steps(steps: Sequence[Step], origin: str) -> str:
    if not steps:
        return ""
    rows = "".join(
        f"<li>{escape(step.text)}<pre tabindex=0><code>"
        f"{escape(step.command.replace('{origin}', origin))}</code></pre></li>"
        for step in steps
    )
    return f"<section><h2>What to do next</h2><ul class=steps>{rows}</ul></section>\n"


def _links(links: Sequence[Link]) -> str:
    rows = "".join(
        f'<dt><a href="{escape(link.href)}">{escape(link.name)}</a></dt>'
        f"<dd>{escape(link.note)}</dd>"
        for link in (*links, *PROBES)
    )
    return f'<section><h2>What it serves</h2><dl class="facts">{rows}</dl></section>'


@cache
def _style() -> str:
    return LOOK.read_text(encoding="utf-8")


@cache
def _style_hash() -> str:
    digest = hashlib.sha256(_style().encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode()
