"""The process of a node: its signals, its parent, and the limit of its end."""

import asyncio
import logging
import os
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING

from broker.config.broker_config import BrokerConfig
from broker.server.node import Node, Stop
from broker.server.quorum.initial_controllers import InitialController

if TYPE_CHECKING:
    from broker.server.testing.testing import Testing

log = logging.getLogger("millstream.node")

FATAL_STOP_SECONDS = 10
"""The longest time that a failed node takes to stop; after it the process ends."""


async def run(
    config: BrokerConfig,
    *,
    cluster_id: str | None,
    controllers: tuple[InitialController, ...] = (),
    exit_with_parent: bool = False,
    is_testing: bool = False,
) -> str | None:
    """Serve until SIGTERM or SIGINT, or until standard input closes if `exit_with_parent`.

    Return None for such a clean end, else what went wrong.
    """
    loop = asyncio.get_running_loop()
    stop = Stop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.event.set)
    if exit_with_parent:
        loop.add_reader(sys.stdin.fileno(), _on_stdin, stop.event)
    testing = _testing(config) if is_testing else None
    node = Node(config, cluster_id=cluster_id, controllers=controllers, testing=testing)
    if testing is not None:
        testing.state.node, testing.state.restart = node, partial(node.restart, stop)
    await node.open(stop)
    async with asyncio.TaskGroup() as tasks:
        node.start_background(tasks)
        if not stop.event.is_set():
            _announce(node.ready_line())
        await stop.event.wait()
        await _stop_in_time(node, stop.failure)
    return stop.failure


def _testing(config: BrokerConfig) -> "Testing":
    """Return what only a node under test has; no other node loads it."""
    from broker.server.testing.testing import Testing

    return Testing(config)


async def _stop_in_time(node: Node, failure: str | None) -> None:
    """Stop the node; a failed node stops within a limit, so that it can be restarted soon."""
    try:
        async with asyncio.timeout(FATAL_STOP_SECONDS if failure else None):
            await node.stop()
    except TimeoutError:
        log.critical("not stopped after %d s, ending as it is", FATAL_STOP_SECONDS)
        os._exit(1)


def _announce(line: str) -> None:
    """Print the line that tells the starting process that this program is ready."""
    print(line, flush=True)  # noqa: T201


def _on_stdin(stopped: asyncio.Event) -> None:
    if os.read(sys.stdin.fileno(), 4096) == b"":
        stopped.set()
