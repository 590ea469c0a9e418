"""The output about a stack: a table of addresses, and variables to export. Does no IO."""

from collections.abc import Mapping
from typing import Any

from millstream.processes.switchboard import ENDED, PAUSED, READY, STARTING, STOPPED
from stack.plan import Plan, addresses, variables

_WHAT = {
    "broker": "Kafka, for any client",
    "registry": "schemas: Avro, JSON Schema, Protobuf",
    "rest-proxy": "Kafka over HTTP, v2 and v3",
    "connect": "connectors in and out",
    "console": "what is in Kafka, and what to try next",
}
HANGS = "does not answer: see millstream logs"


def table(plan: Plan, state: Mapping[str, Any]) -> str:
    """Return a line for each part: its address, its state, its purpose."""
    rows = [
        (name, address, part_state(plan, state, name), _WHAT[name])
        for name, address in addresses(plan).items()
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
        for row in rows
    )


def part_state(plan: Plan, state: Mapping[str, Any], name: str) -> str:
    """Return the state of a part; for brokers it is the worst state of all.

    Brokers that the user has stopped are named.
    """
    told = state.get("parts", {})
    names = [f"broker-{n}" for n in range(1, plan["brokers"] + 1)] if name == "broker" else [name]
    states = [told.get(each, {}).get("state", STARTING) for each in names]
    if stopped := [each for each, at in zip(names, states, strict=True) if at == STOPPED]:
        return f"stopped: {', '.join(stopped)}"
    return next((each for each in (ENDED, PAUSED, HANGS, STARTING) if each in states), READY)


def exports(plan: Plan) -> str:
    """Return lines with `export` for a shell."""
    return "\n".join(f"export {name}={value}" for name, value in variables(plan).items())


def as_json(plan: Plan, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the addresses and states as JSON, for programs."""
    return {
        "name": plan["name"],
        "is_ready": bool(state.get("is_ready")),
        "pid": state.get("pid"),
        "data": None if plan["is_ephemeral"] else plan["data_folder"],
        "addresses": addresses(plan),
        "environment": variables(plan),
        "parts": state.get("parts", {}),
    }
