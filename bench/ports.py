"""Free ports on loopback."""

import contextlib
import socket


def free_port() -> int:
    """Return a port that nothing listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def free_ports(count: int) -> int:
    """Return the first of so many ports in a row."""
    while True:
        first = free_port()
        with contextlib.ExitStack() as stack:
            try:
                for port in range(first, first + count):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except (OSError, OverflowError):
                continue
        return first
