"""Ports: the well-known ones, free ones, and the process that uses a port."""

import os
import re
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

BROKER, REGISTRY, REST_PROXY = "broker", "registry", "rest-proxy"
CONNECT, CONSOLE = "connect", "console"
PARTS = (BROKER, REGISTRY, REST_PROXY, CONNECT, CONSOLE)
WELL_KNOWN = {BROKER: 9092, REGISTRY: 8081, REST_PROXY: 8082, CONNECT: 8083, CONSOLE: 8080}
_LISTENING = "0A"
_SOCKET = re.compile(r"socket:\[(\d+)\]")


def wanted_ports(parts: Sequence[str], brokers: int, offset: int) -> dict[str, int]:
    """Return a port for each part; brokers are `broker-1`, ... Raise ValueError above 65535."""
    wanted: dict[str, int] = {}
    for part in parts:
        first = WELL_KNOWN[part] + offset
        if part == BROKER:
            wanted |= {f"{BROKER}-{number}": first + number - 1 for number in range(1, brokers + 1)}
        else:
            wanted[part] = first
    beyond = [port for port in wanted.values() if not 0 < port < 1 << 16]
    if beyond:
        raise ValueError(f"there is no port {beyond[0]}")
    doubled = len(wanted) != len(set(wanted.values()))
    if doubled:
        raise ValueError("two parts would have the same port: use another --offset-ports")
    return wanted


def taken(ports: Mapping[str, int]) -> dict[str, int]:
    """Return the ports that are in use."""
    return {name: port for name, port in ports.items() if not is_free(port)}


def is_free(port: int) -> bool:
    """Return whether a port of 127.0.0.1 is unused and this user may listen on it."""
    with socket.socket() as probe:
        # Servers set this option, too: connections in TIME_WAIT do not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
        except OSError:
            return False
    return True


def holder(port: int, proc: Path = Path("/proc")) -> str:
    """Describe the process that listens on a port; empty if it cannot be found."""
    inodes = set()
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            inodes |= listening_inodes((proc / "net" / table).read_text(), port)
    for folder in proc.iterdir() if inodes and proc.is_dir() else ():
        if folder.name.isdigit() and inodes & _sockets(folder):
            return f"process {folder.name} ({_command(folder)})"
    return ""


def listening_inodes(table: str, port: int) -> set[str]:
    """Return the inodes of sockets that listen on a port, from the text of /proc/net/tcp."""
    found = set()
    for line in table.splitlines()[1:]:
        fields = line.split()
        is_listening = len(fields) > 9 and fields[3] == _LISTENING
        if is_listening and int(fields[1].rpartition(":")[2], 16) == port:
            found.add(fields[9])
    return found


def _sockets(process: Path) -> set[str]:
    found: set[str] = set()
    try:
        descriptors = list((process / "fd").iterdir())
    except OSError:  # the process belongs to another user, or has ended
        return found
    for each in descriptors:
        with suppress(OSError):
            match = _SOCKET.match(os.readlink(each))
            if match:
                found.add(match[1])
    return found


def _command(process: Path) -> str:
    try:
        parts = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return "gone"
    text = b" ".join(parts).decode(errors="replace").strip()
    return text if len(text) <= 120 else text[:117] + "..."
