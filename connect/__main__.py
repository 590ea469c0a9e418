"""`millrace connect start worker.properties [connector ...]` runs a worker, the others ask one."""

import sys

from connect.client.arguments import parse_arguments


def main() -> int:
    options = parse_arguments(sys.argv[1:])
    if options.command == "start":
        # Only here: whoever asks a worker need not wait for the clients of Kafka to be imported.
        from connect.start import run

        return run(options)
    from connect.client.commands import run_command

    return run_command(options)


if __name__ == "__main__":
    sys.exit(main())
