"""`millstream delegation-tokens`: make, renew, end and list tokens, as kafka-delegation-tokens."""

import argparse
import binascii
import sys
from base64 import b64decode
from collections.abc import Iterable
from datetime import UTC, datetime

from broker.cli.arguments import (
    ToolFailed,
    add_connection,
    check_required,
    connection_of,
    tool_parser,
)
from broker.cli.token_requests import (
    KnownToken,
    create_token,
    describe_tokens,
    expire_token,
    renew_token,
)
from common.kafka.admin.client import AdminClient
from common.kafka.errors import KafkaError

DESCRIPTION = (
    "Create, renew, expire and describe delegation tokens: secrets that stand for a user for a "
    "limited time. Brokers need delegation.token.secret.key, and a listener with authentication."
)
ACTIONS = {
    "create": ("max-life-time-period",),
    "renew": ("hmac", "renew-time-period"),
    "expire": ("hmac", "expiry-time-period"),
    "describe": (),
}
COLUMNS = (
    ("TOKENID", 15),
    ("HMAC", 30),
    ("OWNER", 15),
    ("REQUESTER", 15),
    ("RENEWERS", 25),
    ("ISSUEDATE", 15),
    ("EXPIRYDATE", 15),
    ("MAXDATE", 15),
)


def main(arguments: list[str]) -> int:
    """Carry out one action; 1 when it is refused."""
    parser = _parser()
    options = parser.parse_args(arguments)
    actions = [action for action in ACTIONS if getattr(options, action)]
    if len(actions) != 1:
        parser.error(
            "Command must include exactly one action: --create, --renew, --expire or --describe"
        )
    check_required(parser, options, ("command-config", *ACTIONS[actions[0]]))
    run = {"create": _create, "renew": _renew, "expire": _expire, "describe": _describe}
    try:
        with AdminClient(connection_of(options)) as client:
            run[actions[0]](client, options)
    except (KafkaError, ToolFailed, ValueError) as error:
        print(f"Error while executing delegation token command : {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = tool_parser("delegation-tokens", DESCRIPTION)
    add_connection(parser, has_controllers=False, is_required=True)
    parser.add_argument("--create", action="store_true", help="create a token")
    parser.add_argument("--renew", action="store_true", help="move the end of a token")
    parser.add_argument("--expire", action="store_true", help="end a token earlier, or at once")
    parser.add_argument("--describe", action="store_true", help="list tokens")
    principal = {"metavar": "User:NAME", "action": "append", "default": []}
    parser.add_argument(
        "--owner-principal",
        help="the owner of the new token, or the owners and renewers whose tokens are listed",
        **principal,  # type: ignore[arg-type]
    )
    parser.add_argument(
        "--renewer-principal",
        help="a user that may renew and end the new token",
        **principal,  # type: ignore[arg-type]
    )
    parser.add_argument("--hmac", metavar="BASE64", help="the secret of the token")
    for flag, what in (
        ("max-life-time-period", "the longest life of the token"),
        ("renew-time-period", "the time until the new end"),
        ("expiry-time-period", "the time until the new end; -1 ends it at once"),
    ):
        parser.add_argument(
            f"--{flag}", type=int, metavar="MS", help=f"{what}; -1 takes the brokers' setting"
        )
    return parser


def _create(client: AdminClient, options: argparse.Namespace) -> None:
    renewers, lifetime_ms = options.renewer_principal, options.max_life_time_period
    print(
        f"Calling create token operation with renewers :{listed(renewers)} , "
        f"max-life-time-period :{lifetime_ms}"
    )
    owner = options.owner_principal[0] if options.owner_principal else None
    made = create_token(client, owner, renewers, lifetime_ms)
    print(f"Created delegation token with tokenId : {made.token.token_id}")
    print_tokens([made])


def _renew(client: AdminClient, options: argparse.Namespace) -> None:
    period_ms = options.renew_time_period
    print(
        f"Calling renew token operation with hmac :{options.hmac} , renew-time-period :{period_ms}"
    )
    end_ms = renew_token(client, _decoded(options.hmac), period_ms)
    print(f"Completed renew operation. New expiry date : {date_text(end_ms)}")


def _expire(client: AdminClient, options: argparse.Namespace) -> None:
    period_ms = options.expiry_time_period
    print(
        f"Calling expire token operation with hmac :{options.hmac} , "
        f"expire-time-period :{period_ms}"
    )
    end_ms = expire_token(client, _decoded(options.hmac), period_ms)
    print(f"Completed expire operation. New expiry date : {date_text(end_ms)}")


def _describe(client: AdminClient, options: argparse.Namespace) -> None:
    owners = options.owner_principal
    if owners:
        print(f"Calling describe token operation for owners: {listed(owners)}")
    else:
        print("Calling describe token operation for current user.")
    # Kafka's tool sends an empty list here, for which brokers return nothing.
    tokens = describe_tokens(client, owners or None)
    print(f"Total number of tokens : {len(tokens)}", end="")
    print_tokens(tokens)


def _decoded(hmac: str) -> bytes:
    try:
        return b64decode(hmac, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ToolFailed("--hmac is not base64") from error


def print_tokens(tokens: Iterable[KnownToken]) -> None:
    """Print the lines of Kafka's tool about tokens."""
    print("\n" + _line([name for name, _ in COLUMNS]))
    for token, hmac in tokens:
        cells = [
            token.token_id,
            hmac,
            token.owner,
            token.requester,
            listed(token.renewers),
            date_text(token.issue_timestamp_ms),
            date_text(token.expiry_timestamp_ms),
            date_text(token.max_timestamp_ms),
        ]
        print("\n" + _line(cells))


def _line(cells: list[str]) -> str:
    return " ".join(f"{cell:<{width}}" for cell, (_, width) in zip(cells, COLUMNS, strict=True))


def listed(names: Iterable[str]) -> str:
    """Return a list as Java writes it."""
    return f"[{', '.join(names)}]"


def date_text(timestamp_ms: int) -> str:
    """Return a time as Kafka's tool writes it, in this machine's time zone."""
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1_000, UTC).astimezone()
        return moment.strftime("%Y-%m-%dT%H:%M")
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
