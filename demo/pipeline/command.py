"""The command `millstream demo`."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from common.credentials.translation import ClientSettingsError
from common.kafka.client.exchange import ConnectionFailed
from common.kafka.errors import KafkaError
from common.process.tasks import spawn
from demo.pipeline.analytics import DashboardBehindError
from demo.pipeline.display import Display
from demo.pipeline.invoices import UnreadableOrdersError
from demo.pipeline.mirror import MirrorBehindError
from demo.pipeline.options import Options, parse_options
from demo.pipeline.scenario import run_demo
from demo.pipeline.topics import TopicsInUseError
from millstream.processes.child_processes import ChildDiedError

_KNOWN_ERRORS = (
    ChildDiedError,
    ClientSettingsError,
    ConnectionFailed,
    DashboardBehindError,
    KafkaError,
    MirrorBehindError,
    UnreadableOrdersError,
    TopicsInUseError,
)


def main(arguments: list[str]) -> int:
    """Run the demo; return its exit code."""
    options = parse_options(arguments, os.environ)
    _log_to(options.folder / "logs" / "demo.log")
    try:
        return asyncio.run(_run(options))
    except BaseExceptionGroup as group:
        known = list(_known_errors(group))
        if not known:
            raise
        for error in known:
            sys.stderr.write(f"millstream demo: {error}\n")
        return 1
    except _KNOWN_ERRORS as error:
        sys.stderr.write(f"millstream demo: {error}\n")
        return 1


def _log_to(file: Path) -> None:
    """Keep the Kafka client's log messages about dead brokers out of the demo's output."""
    file.parent.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(
        filename=file, filemode="w", format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )


async def _run(options: Options) -> int:
    demo = spawn(run_demo(options, Display()))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, demo.cancel)
    try:
        return await demo
    except asyncio.CancelledError:
        sys.stdout.write("stopped\n")
        # A demo that should end after its orders was interrupted before.
        return 130 if options.once else 0


def _known_errors(group: BaseExceptionGroup) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _known_errors(error)
        elif isinstance(error, _KNOWN_ERRORS):
            yield error
