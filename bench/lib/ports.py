"""Free ports on loopback."""

import contextlib
import random
import socket
from pathlib import Path

_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LEAST = 10_000


def free_port() -> int:
    """Return a port on which no process listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def free_ports(count: int) -> int:
    """Return the first of `count` consecutive ports, outside the range of ephemeral ports."""
    below = int(_EPHEMERAL.read_text().split()[0]) if _EPHEMERAL.exists() else 32768
    while True:
        first = random.randrange(_LEAST, below - count)
        with contextlib.ExitStack() as stack:
            try:
                for port in range(first, first + count):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
        return first
