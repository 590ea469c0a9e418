"""`millstream certificates`: make a certificate authority for tests, and certificates of it."""

import sys
from pathlib import Path

from common.process.command_parser import CommandParser
from millstream.testing.certificates import LOOPBACK, CertificateAuthority


def main(arguments: list[str]) -> int:
    """Create an authority and certificates in a folder; return 1 if that fails."""
    parser = CommandParser(
        prog="millstream certificates",
        description="Make a certificate authority for tests, and certificates of it, as PEM files.",
        examples=[
            "millstream certificates certs broker-1 --host broker-1.example",
            "millstream certificates certs alice bob",
        ],
    )
    parser.add_argument("folder", type=Path, help="where the authority is, or is made")
    parser.add_argument("names", nargs="*", metavar="NAME", help="issue a certificate CN=NAME")
    parser.add_argument(
        "--host",
        action="append",
        metavar="NAME_OR_ADDRESS",
        help="where a server with these certificates is reached; loopback by default",
    )
    options = parser.parse_args(arguments)
    try:
        authority = CertificateAuthority(options.folder)
        print(f"trust: {authority.certificate}")
        for name in options.names:
            issued = authority.issue(name, options.host or LOOPBACK)
            print(f"CN={name}: ssl.keystore.location={issued.keystore}")
    except ImportError:
        print("certificates need: pip install 'millstream[security]'", file=sys.stderr)
        return 1
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0
