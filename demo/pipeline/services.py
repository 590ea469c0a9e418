"""The services of the demo and their arguments; all start at the same time."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from millstream.launch import service_names
from millstream.processes.child_processes import Children

SERVICES = service_names()


async def start_services(
    children: Children, common: Sequence[str], folder: Path, ports: Sequence[int]
) -> dict[str, str]:
    """Start all services; return their addresses when all are ready."""
    own = _own_arguments(folder, dict(zip(SERVICES, ports, strict=True)))
    async with asyncio.TaskGroup() as group:
        starting = {
            service: group.create_task(
                children.start(
                    service,
                    f"services.{service}",
                    *common,
                    *own.get(service, ()),
                    *("--http-port", str(port), "--allow-faults", "1"),
                    is_revived=True,
                )
            )
            for service, port in zip(SERVICES, ports, strict=True)
        }
    return {service: task.result().address for service, task in starting.items()}


def _own_arguments(folder: Path, ports: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    """Return the additional arguments of single services; their files are in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    return {
        "orders": ("--search-url", f"http://127.0.0.1:{ports['search']}"),
        "payments": ("--provider-books", str(folder / "provider-books.sqlite")),
        "email": ("--mailbox", str(folder / "mailbox")),
        "search": ("--index", str(folder / "orders.sqlite")),
    }
