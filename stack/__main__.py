"""`python -m stack FOLDER`: run the stack whose plan is in a folder, until SIGTERM."""

import asyncio
import logging
import signal
import sys
from pathlib import Path

from common.process.tasks import spawn
from millstream.processes.child_processes import ChildDiedError
from stack.place import Place
from stack.supervisor import Supervisor

log = logging.getLogger("stack")


async def run(place: Place) -> None:
    """Run until a signal; an error at the start is written to the state."""
    running = spawn(Supervisor(place).run())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)
    try:
        await running
    except asyncio.CancelledError:
        log.info("stack stopped on a signal")


def main() -> int:
    """Run the program; return 1 if the stack cannot be started."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    place = Place(Path(sys.argv[1]))
    lock = place.take()
    if lock is None:
        log.info("another process runs this stack")
        return 0
    try:
        asyncio.run(run(place))
    except (ChildDiedError, OSError) as error:
        log.error("stack cannot start: %s", error)
        place.write(place.state_file, {"error": str(error)})
        return 1
    # The lock is held until this process has ended; then its programs have ended as well.
    return 0


if __name__ == "__main__":
    sys.exit(main())
