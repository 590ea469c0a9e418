"""`millstream rights`: the least rights of each program, printed or added."""

import os
import sys
from collections.abc import Sequence

from common.credentials.access import add_option, kafka_access
from common.credentials.translation import ClientSettingsError
from common.kafka.errors import KafkaError
from common.kafka.grants import grant
from common.kafka.rights import OPERATORS, commands, programs, unnamed
from common.process.command_parser import CommandParser


def main(arguments: Sequence[str]) -> int:
    """Print the rights, or add them; 1 when the cluster refuses, 2 for a wrong argument."""
    parser = CommandParser(
        prog="millstream rights",
        description="Print the least rights of each program as commands of millstream acls; with "
        "--add, give them to the principal User:PROGRAM on a cluster.",
        examples=[
            "millstream rights fraud inventory",
            "millstream rights --add --bootstrap-server localhost:9092 "
            "--command-config admin.properties",
        ],
    )
    parser.add_argument(
        "programs",
        nargs="*",
        metavar="PROGRAM",
        help=f"by default: {', '.join(unnamed())}; by name only: {', '.join(sorted(OPERATORS))}",
    )
    parser.add_argument("--add", action="store_true", help="add them to a cluster")
    parser.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT",
        help="a broker of the cluster (KAFKA_BOOTSTRAP_SERVERS)",
    )
    add_option(parser)
    options = parser.parse_args(arguments)
    unknown = [name for name in options.programs if name not in programs()]
    if unknown:
        parser.error(f"no program {unknown[0]}; there are {', '.join(programs())}")
    if options.add:
        options.bootstrap_server = options.bootstrap_server or os.environ.get(
            "KAFKA_BOOTSTRAP_SERVERS"
        )
    if options.add != (options.bootstrap_server is not None):
        parser.error("--add and --bootstrap-server go together")
    chosen = {f"User:{name}": programs()[name] for name in options.programs or unnamed()}
    if not options.add:
        for principal, rights in chosen.items():
            print("\n".join(commands(principal, rights)))
        return 0
    try:
        grant(kafka_access(options.bootstrap_server, options.command_config), chosen)
    except ClientSettingsError as error:
        parser.error(str(error))
    except KafkaError as error:
        print(f"millstream rights: {error}", file=sys.stderr)
        return 1
    print(f"added: rights of {', '.join(chosen)}")
    return 0
