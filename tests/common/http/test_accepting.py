"""All servers accept through `common.http.accepting`: the loops give the last file away."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAMS = (
    "broker",
    "connect",
    "millstream",
    "common",
    "mirror",
    "schemas",
    "services",
    "spark_analytics",
    "streams",
)
OTHER_WAYS = {
    "HTTPServer",
    "SockSite",
    "TCPSite",
    "ThreadingHTTPServer",
    "UnixSite",
    "run_app",
    "sock_accept",
    "start_server",
    "start_unix_server",
}
LOOPS_OWN = {"create_server", "create_unix_server"}
BINDS_ONLY = ("common/http/accepting.py",)
"""Has the loop find the addresses of a name, and has it serve nothing there."""


def programs() -> Iterator[Path]:
    for program in PROGRAMS:
        yield from sorted((ROOT / program).rglob("*.py"))


def other_ways(path: Path) -> Iterator[str]:
    """Name whatever a file uses that accepts by itself; a socket of its own only listens."""
    code = path.read_text()
    if not any(name in code for name in OTHER_WAYS | LOOPS_OWN):
        return
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute):
            is_sockets_own = isinstance(node.value, ast.Name) and node.value.id == "socket"
            if node.attr in OTHER_WAYS or (node.attr in LOOPS_OWN and not is_sockets_own):
                yield node.attr
        elif isinstance(node, ast.Name | ast.alias):
            name = node.id if isinstance(node, ast.Name) else node.name
            if name in OTHER_WAYS:
                yield name


def test_no_server_accepts_in_a_way_of_its_own() -> None:
    found = {
        str(path.relative_to(ROOT)): ways for path in programs() if (ways := set(other_ways(path)))
    }
    for path in BINDS_ONLY:
        assert found.pop(path) == {"create_server"}
    assert not found


@pytest.mark.parametrize(
    "code",
    [
        "from aiohttp.web import TCPSite",
        "web.run_app(app)",
        "asyncio.start_server(serve)",
        "loop.create_server(Protocol)",
        "http.server.HTTPServer(address, Handler)",
    ],
)
def test_another_way_is_found(tmp_path: Path, code: str) -> None:
    path = tmp_path / "server.py"
    path.write_text(code)
    assert list(other_ways(path))
