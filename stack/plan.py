"""The plan of a stack: made from the options before the start; addresses are read from it."""

import json
import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from common.credentials.access import VARIABLE
from millstream.processes.cluster_layout import free_ports, initial_controllers, random_cluster_id
from millstream.processes.switchboard import write_whole
from stack.options import UpOptions
from stack.place import Place
from stack.ports import (
    BROKER,
    CONNECT,
    CONSOLE,
    REGISTRY,
    REST_PROXY,
    holder,
    taken,
    wanted_ports,
)
from stack.security import client_file, kcat_file

Plan = dict[str, Any]
CONTROL_VARIABLE = "KAFKA_CONTROL_URLS"
_VARIABLES = {
    REGISTRY: "SCHEMA_REGISTRY_URL",
    REST_PROXY: "KAFKA_REST_URL",
    CONNECT: "CONNECT_URL",
}


class PlanError(Exception):
    """The stack cannot be started with these options; the message says why."""


def make_plan(options: UpOptions, place: Place) -> Plan:
    """Make all decisions before any program starts. Raise PlanError."""
    if options.security and find_spec("cryptography") is None:
        raise PlanError("--security needs: pip install 'millstream[security]'")
    try:
        ports = wanted_ports(options.parts, options.brokers, options.offset)
    except ValueError as error:
        raise PlanError(str(error)) from None
    data = options.data_folder or place.data_folder
    _check_folder(data)
    cluster_id, controllers = _cluster_in(data, options)
    kept = set(_ports_of(controllers).values())
    # One iterator for all parts, so that no port is given twice.
    others = (port for port in free_ports() if port not in kept)
    if options.any_port:
        ports = dict(zip(ports, others, strict=False))
    elif "--name" in options.given and not options.offset:
        # A second stack beside the first: the taken ports are replaced.
        ports |= {name: next(others) for name in taken(ports)}
    else:
        refuse_taken(ports)
    numbers = range(1, options.brokers + 1)
    if not controllers:
        controllers = initial_controllers({number: next(others) for number in numbers})
    for port in taken(_ports_of(controllers)).values():
        # The metadata log has the old port; the nodes look for each other at the new ones too.
        controllers = controllers.replace(f":{port}:", f":{next(others)}:")
    return {
        "name": place.name,
        "folder": str(place.folder),
        "data_folder": str(data),
        "is_ephemeral": options.is_ephemeral,
        "brokers": options.brokers,
        "cluster_id": cluster_id,
        "initial_controllers": controllers,
        "ports": ports,
        "controller_ports": _ports_of(controllers),
        "broker_http_ports": {str(number): next(others) for number in numbers},
        "seeds": options.seeds,
        "security": options.security,
        "is_testing": options.is_testing,
    }


def _check_folder(folder: Path) -> None:
    """Raise PlanError if nothing can be stored in a folder, which is created."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise PlanError(f"--data {folder}: this is a file, or below a file") from None
    except OSError as error:
        raise PlanError(f"--data {folder} cannot be created: {error.strerror}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PlanError(f"--data {folder}: this user cannot write in it")


def moved_ports(options: UpOptions, plan: Plan) -> list[str]:
    """Return a sentence for each part that does not have its usual port because that is taken."""
    if options.any_port:
        return []
    usual = wanted_ports(options.parts, options.brokers, options.offset)
    return [
        f"port {usual[name]} is taken: {name} has port {port}"
        for name, port in plan["ports"].items()
        if port != usual[name]
    ]


def refuse_other_options(options: UpOptions, plan: Plan) -> None:
    """Raise PlanError if options were given that the running stack of this plan does not have."""
    parts = {name.partition("-1")[0] for name in plan["ports"]}
    seeds = json.loads(json.dumps(options.seeds))
    # Each is compared only if it was given: a plain `up` finds every stack.
    differ = {
        "--brokers": "--brokers" in options.given and options.brokers != plan["brokers"],
        "--only": "--only" in options.given and not set(options.parts) <= parts,
        "--data": options.data_folder is not None
        and options.data_folder.resolve() != Path(plan["data_folder"]).resolve(),
        "--ephemeral": options.is_ephemeral and not plan["is_ephemeral"],
        "--topics or --seed": bool(seeds) and seeds != plan["seeds"],
        "--testing": options.is_testing and not plan.get("is_testing"),
        "--security": options.security not in ("", plan.get("security", "")),
    }
    if found := [flag for flag, differs in differ.items() if differs]:
        raise PlanError(
            f"the stack {plan['name']} runs already, without this: {', '.join(found)}\n"
            "Stop it first with millstream down, or start another one with --name."
        )


def refuse_taken(ports: Mapping[str, int]) -> None:
    """Raise PlanError if one of the ports is in use, and name the process."""
    lines = []
    for name, port in taken(ports).items():
        who = holder(port)
        lines.append(f"port {port} of {name} is taken{' by ' + who if who else ''}")
    if lines:
        raise PlanError(
            "\n".join(lines) + "\nStop that process, or use --any-port or --offset-ports N."
        )


def _cluster_in(data: Path, options: UpOptions) -> tuple[str, str]:
    """Return the id and the first controllers of the cluster in the data folder.

    Without data the id is new, and there are no controllers. Raise PlanError.
    """
    file = data / "cluster"
    if options.is_ephemeral or not file.exists():
        return random_cluster_id(), ""
    try:
        cluster_id, brokers, *rest = file.read_text().split()
        # A release whose voters were in the settings has not written the controllers.
        controllers = "".join(rest)
        _ports_of(controllers)
    except (OSError, ValueError) as error:
        raise PlanError(f"{file} cannot be read: {error}") from None
    if brokers != str(options.brokers):
        raise PlanError(
            f"the data in {data} is from {brokers} broker(s): use --brokers {brokers}, "
            "another --data, or first millstream down --delete-data"
        )
    return cluster_id, controllers


def _ports_of(controllers: str) -> dict[str, int]:
    """Return the ports of controllers by their ids; raise ValueError."""
    ports = {}
    for text in filter(None, controllers.split(",")):
        number, address = text.split("@")
        _, port, _ = address.split(":")
        ports[number] = int(port)
    return ports


def remember_cluster(plan: Plan) -> None:
    """Store the id and the controllers of the cluster with its data; raise OSError."""
    file = Path(plan["data_folder"]) / "cluster"
    write_whole(file, f"{plan['cluster_id']} {plan['brokers']}\n{plan['initial_controllers']}\n")


def bootstrap_servers(plan: Plan) -> str:
    """Return the bootstrap servers for Kafka clients."""
    return ",".join(
        f"127.0.0.1:{plan['ports'][f'{BROKER}-{number}']}"
        for number in range(1, plan["brokers"] + 1)
    )


def security_folder(plan: Plan) -> Path | None:
    """Return the folder with the files of a secured stack; None for one without security."""
    return Path(plan["folder"]) / "security" if plan.get("security") else None


def url_of(plan: Plan, part: str) -> str:
    """Return the address of a part; empty if the stack lacks it."""
    port = plan["ports"].get(part)
    return "" if port is None else f"http://127.0.0.1:{port}"


def addresses(plan: Plan) -> dict[str, str]:
    """Return the address of each part, in the order of the output."""
    urls = {part: url_of(plan, part) for part in (REGISTRY, REST_PROXY, CONNECT, CONSOLE)}
    return {"broker": bootstrap_servers(plan), **{part: url for part, url in urls.items() if url}}


def variables(plan: Plan) -> dict[str, str]:
    """Return the environment variables with the addresses, for clients."""
    urls = {_VARIABLES[part]: url_of(plan, part) for part in _VARIABLES}
    folder = security_folder(plan)
    files = (
        {} if folder is None else {VARIABLE: client_file(folder), "KCAT_CONFIG": kcat_file(folder)}
    )
    return {
        "KAFKA_BOOTSTRAP_SERVERS": bootstrap_servers(plan),
        **{name: url for name, url in urls.items() if url},
        **files,
        **_controls(plan),
    }


def _controls(plan: Plan) -> dict[str, str]:
    """Return the variable with the addresses where tests arm faults, if there are any."""
    if not plan.get("is_testing"):
        return {}
    ports = plan["broker_http_ports"].values()
    return {CONTROL_VARIABLE: ",".join(f"http://127.0.0.1:{port}" for port in ports)}


def environment_file(plan: Plan) -> str:
    """Return the variables in the format of a shell and of `docker run --env-file`."""
    return "".join(f"{name}={value}{os.linesep}" for name, value in variables(plan).items())
