"""The page of the stack, without a stack."""

import json
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


def test_programs_get_addresses_and_browsers_a_page() -> None:
    status, headers, body = page().answer("GET", "/", LOCAL)
    shown = json.loads(body)
    assert (status, shown["is_ready"]) == (200, True)
    assert shown["addresses"]["registry"] == "http://127.0.0.1:8081"
    status, headers, body = page().answer("GET", "/", {**LOCAL, "accept": "text/html"})
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
    found, _, body = page(is_ready, registry).answer("GET", "/health/ready", LOCAL)
    assert (found, json.loads(body)["missing"]) == (status, missing)


def test_metrics_probes_and_refusals() -> None:
    text = page().answer("GET", "/metrics", LOCAL)[2].decode()
    assert 'millrace_stack_part_ready{part="registry"} 1' in text
    assert page().answer("GET", "/health/live?x", LOCAL)[0] == 200
    assert page().answer("GET", "/nowhere", LOCAL)[0] == 404
    assert page().answer("POST", "/", LOCAL)[0] == 405
    for host in ("evil.example", "evil.example:8080", "127.0.0.1.evil.example"):
        assert page().answer("GET", "/", {"host": host})[0] == 421
