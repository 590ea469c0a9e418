"""`millstream connect start worker.properties [connector ...]` runs a worker.

All other commands send requests to a worker.
"""

import sys

from common.process.ending import run_until_closed
from connect.client.arguments import parse_arguments


def main() -> int:
    options = parse_arguments(sys.argv[1:])
    if options.command == "start":
        # Imported here: the other commands start faster without Kafka's clients.
        from connect.start import run

        return run(options)
    from connect.client.commands import run_command

    return run_command(options)


if __name__ == "__main__":
    sys.exit(run_until_closed(main))
