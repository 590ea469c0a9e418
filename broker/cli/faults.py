"""`millstream faults`: a proxy that puts faults on demand before any Kafka."""

import argparse
import asyncio
import logging
import ssl
import sys

from broker.cli.admin_settings import read_properties
from broker.cli.arguments import ToolFailed, tool, tool_parser
from broker.cli.security import is_local
from broker.config.broker_config import Endpoint
from broker.config.security_config import read_client_security
from common.credentials.translation import ClientSettingsError
from common.http.security import HttpSecurity, add_http_option, http_security
from common.kafka.client.exchange import parse_addresses

INVALID_ARGUMENTS = 2
Address = tuple[str, int]


@tool("millstream faults: ")
def main(arguments: list[str]) -> int:
    """Serve until SIGTERM; return 1 if it cannot."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(
        level=logging.INFO,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    try:
        security = http_security(options.http_config)
    except ClientSettingsError as error:
        raise ToolFailed(str(error)) from error
    control = options.control or (options.listen[0], 0)
    _check_control(control, security)
    upstream = parse_addresses(options.upstream, default_port=9092)
    tls = _tls(options.command_config)
    # Imported here: what is wrong with the arguments is told before the server is loaded.
    from broker.proxy.proxy import Addresses, run

    addresses = Addresses(options.listen, upstream, control, options.advertised_host)
    try:
        asyncio.run(run(addresses, tls, security, lambda line: print(line, flush=True)))
    except OSError as error:
        raise ToolFailed(f"cannot start: {error}") from error
    return 0


def _check_control(control: Address, security: HttpSecurity) -> None:
    if not is_local(Endpoint("", *control)) and not security.users:
        raise ToolFailed(
            f"the control at {control[0]} needs users and passwords (--http-config), or an "
            "address of this machine alone: --control 127.0.0.1:9300"
        )


def _tls(file: str) -> ssl.SSLContext | None:
    """Return how to connect to the brokers behind; None for plain connections."""
    if not file:
        return None
    read = read_client_security(read_properties(file))
    if read.protocol.uses_sasl:
        raise ToolFailed(
            f"{file}: the proxy does not log in. Clients do so themselves, through it: "
            "security.protocol is SSL or PLAINTEXT"
        )
    if not read.protocol.uses_tls:
        return None
    # Imported here: few need it.
    from broker.server.login.tls_contexts import make_client_context

    return make_client_context(read)


def _parser() -> argparse.ArgumentParser:
    parser = tool_parser(
        "faults",
        "A proxy before the brokers of any Kafka. It makes errors, delays, lost answers and broken "
        "connections on demand, by HTTP, as a broker does that runs with --testing. Clients "
        "connect to it in clear text, and log in through it.",
    )
    parser.usage_status = INVALID_ARGUMENTS
    parser.add_argument(
        "--listen",
        required=True,
        type=_address,
        metavar="HOST:PORT",
        help="where clients connect; each broker behind gets one of the next ports",
    )
    parser.add_argument(
        "--upstream",
        required=True,
        metavar="HOST:PORT,...",
        help="the brokers to put faults before",
    )
    parser.add_argument(
        "--control",
        type=_address,
        metavar="HOST:PORT",
        help="where faults are armed by HTTP (a free port at the host of --listen)",
    )
    parser.add_argument(
        "--advertised-host",
        default="",
        metavar="HOST",
        help="what clients are told (the host of --listen, or the address that they have reached)",
    )
    parser.add_argument(
        "--command-config",
        default="",
        metavar="FILE",
        help="client settings with the TLS of the brokers behind: security.protocol=SSL",
    )
    add_http_option(parser)
    return parser


def _address(text: str) -> Address:
    host, colon, port = text.rpartition(":")
    if not (colon and port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return host.strip("[]") or "0.0.0.0", int(port)
