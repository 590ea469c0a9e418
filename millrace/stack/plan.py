"""A stack as it is started: its plan, made of options; and its addresses, read from a plan."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from millrace.cluster_layout import free_ports, random_cluster_id
from millrace.stack.options import UpOptions
from millrace.stack.place import Place, write_whole
from millrace.stack.ports import (
    BROKER,
    CONNECT,
    PAGE,
    REGISTRY,
    REST_PROXY,
    holder,
    taken,
    wanted_ports,
)

Plan = dict[str, Any]
_VARIABLES = {
    REGISTRY: "SCHEMA_REGISTRY_URL",
    REST_PROXY: "KAFKA_REST_URL",
    CONNECT: "CONNECT_URL",
}


class PlanError(Exception):
    """A stack that cannot be started as it was asked for; the message says why."""


def make_plan(options: UpOptions, place: Place) -> Plan:
    """Decide everything before anything starts. Raises PlanError."""
    try:
        ports = wanted_ports(options.parts, options.brokers, options.offset)
    except ValueError as error:
        raise PlanError(str(error)) from None
    # One source for all: it gives no port twice.
    others = free_ports()
    if options.any_port:
        ports = dict(zip(ports, others, strict=False))
    else:
        refuse_taken(ports)
    data = options.data_folder or place.data_folder
    numbers = range(1, options.brokers + 1)
    return {
        "name": place.name,
        "folder": str(place.folder),
        "data_folder": str(data),
        "is_ephemeral": options.is_ephemeral,
        "brokers": options.brokers,
        "cluster_id": _cluster_id(data, options),
        "ports": ports,
        "controller_ports": {str(number): next(others) for number in numbers},
        "broker_http_ports": {str(number): next(others) for number in numbers},
        "seeds": options.seeds,
    }


def refuse_taken(ports: Mapping[str, int]) -> None:
    """Raise PlanError when somebody has one of the ports, and say who."""
    lines = []
    for name, port in taken(ports).items():
        who = holder(port)
        lines.append(f"port {port} of {name} is taken{' by ' + who if who else ''}")
    if lines:
        raise PlanError(
            "\n".join(lines) + "\nStop what has it, or use --any-port or --offset-ports N."
        )


def _cluster_id(data: Path, options: UpOptions) -> str:
    """Return the id of the cluster whose data is there, a new one where there is none."""
    if options.is_ephemeral:
        return random_cluster_id()
    file = data / "cluster"
    try:
        cluster_id, brokers = file.read_text().split()
    except FileNotFoundError:
        return random_cluster_id()
    except (OSError, ValueError) as error:
        raise PlanError(f"{file} cannot be read: {error}") from None
    if int(brokers) != options.brokers:
        raise PlanError(
            f"the data in {data} is that of {brokers} broker(s): use --brokers {brokers}, or "
            "another --data"
        )
    return cluster_id


def remember_cluster(plan: Plan) -> None:
    """Keep with the data which cluster it is of; raises OSError."""
    file = Path(plan["data_folder"]) / "cluster"
    write_whole(file, f"{plan['cluster_id']} {plan['brokers']}\n")


def bootstrap_servers(plan: Plan) -> str:
    """Return where clients of Kafka connect."""
    return ",".join(
        f"127.0.0.1:{plan['ports'][f'{BROKER}-{number}']}"
        for number in range(1, plan["brokers"] + 1)
    )


def url_of(plan: Plan, part: str) -> str:
    """Return the address of a part, nothing for one that the stack has not."""
    port = plan["ports"].get(part)
    return "" if port is None else f"http://127.0.0.1:{port}"


def addresses(plan: Plan) -> dict[str, str]:
    """Return the address of each part, in the order in which they are shown."""
    urls = {part: url_of(plan, part) for part in (REGISTRY, REST_PROXY, CONNECT, PAGE)}
    return {"broker": bootstrap_servers(plan), **{part: url for part, url in urls.items() if url}}


def variables(plan: Plan) -> dict[str, str]:
    """Return the variables that tell clients where everything is."""
    urls = {_VARIABLES[part]: url_of(plan, part) for part in _VARIABLES}
    return {
        "KAFKA_BOOTSTRAP_SERVERS": bootstrap_servers(plan),
        **{name: url for name, url in urls.items() if url},
    }


def environment_file(plan: Plan) -> str:
    """Return the variables as a shell and `docker run --env-file` read them."""
    return "".join(f"{name}={value}{os.linesep}" for name, value in variables(plan).items())
