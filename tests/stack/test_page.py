"""The page of the stack, without a stack."""

import asyncio
import json
import socket
from typing import Any

import pytest

from stack.page import Page

PLAN = {
    "name": "default",
    "brokers": 1,
    "is_ephemeral": True,
    "data_folder": "/data",
    "ports": {"broker-1": 9092, "registry": 8081, "page": 8080},
    "broker_http_ports": {"1": 9644},
}
LOCAL = {"host": "localhost:8080"}


def page(is_ready: bool = True, registry: str = "ready") -> Page:
    def part(state: str) -> dict[str, Any]:
        return {"state": state, "pid": 1, "address": ""}

    parts = {"broker-1": part("ready"), "registry": part(registry), "page": part("ready")}
    return Page(PLAN, lambda: {"is_ready": is_ready, "parts": parts})


def answer(
    served: Page, method: str, path: str, headers: dict[str, str]
) -> tuple[int, dict[str, str], bytes]:
    found = served.server.answer(method, path, list(headers.items()))
    return found.status, {"Content-Type": found.content_type, **found.headers}, found.body


def test_programs_get_addresses_and_browsers_a_page() -> None:
    status, headers, body = answer(page(), "GET", "/", LOCAL)
    shown = json.loads(body)
    assert (status, shown["is_ready"]) == (200, True)
    assert shown["addresses"]["registry"] == "http://127.0.0.1:8081"
    status, headers, body = answer(page(), "GET", "/", {**LOCAL, "accept": "text/html"})
    assert b"kcat -b 127.0.0.1:9092" in body
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")


@pytest.mark.parametrize(
    ("is_ready", "registry", "status", "missing"),
    [
        (True, "ready", 200, []),
        (False, "ready", 503, ["seeds"]),
        (False, "starting", 503, ["registry"]),
    ],
)
def test_ready_means_that_seeds_are_there(
    is_ready: bool, registry: str, status: int, missing: list[str]
) -> None:
    found, _, body = answer(page(is_ready, registry), "GET", "/health/ready", LOCAL)
    assert (found, json.loads(body)["missing"]) == (status, missing)


def test_metrics_probes_and_refusals() -> None:
    text = answer(page(), "GET", "/metrics", LOCAL)[2].decode()
    assert 'millstream_stack_part_ready{part="registry"} 1' in text
    assert answer(page(), "GET", "/health/live?x", LOCAL)[0] == 200
    for method, path, status in (("GET", "/nowhere", 404), ("POST", "/", 405)):
        found, headers, body = answer(page(), method, path, LOCAL)
        assert (found, json.loads(body)["status"]) == (status, status)
        assert headers["Content-Type"] == "application/problem+json"
        assert headers.get("Allow") == ("GET, HEAD" if status == 405 else None)
    for host in ("evil.example", "evil.example:8080", "127.0.0.1.evil.example"):
        assert answer(page(), "GET", "/", {"host": host})[0] == 421


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", 400),
        (b"GET /" + b"a" * 20_000, 431),
    ],
)
def test_a_request_that_cannot_be_read_is_answered_by_a_problem_document(
    sent: bytes, status: int
) -> None:
    async def ask() -> bytes:
        served = page()
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        served.start(port)
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            answer = await asyncio.wait_for(reader.read(), 10)
            writer.close()
        finally:
            served.close()
        return answer

    head, _, body = asyncio.run(ask()).partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode())
    assert b"application/problem+json" in head
    assert json.loads(body)["status"] == status


def test_a_data_folder_whose_name_is_not_utf_8_is_shown() -> None:
    plan = {**PLAN, "is_ephemeral": False, "data_folder": "/K\udce4se"}
    served = Page(plan, lambda: {"is_ready": True, "parts": {}})
    body = answer(served, "GET", "/", {**LOCAL, "accept": "text/html"})[2]
    assert "/K\\udce4se" in body.decode()
