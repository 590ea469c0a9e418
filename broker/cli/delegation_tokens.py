"""`millstream delegation-tokens`: make, renew, end and list tokens, as kafka-delegation-tokens."""

import argparse
import binascii
import sys
from base64 import b64decode, b64encode
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from broker.cli.arguments import (
    ToolFailed,
    add_connection,
    check_required,
    connection_of,
    tool_parser,
)
from broker.security.delegation_tokens import DelegationToken
from broker.security.principal import parse_principal
from common.kafka.admin.client import AdminClient, raise_for
from common.kafka.errors import KafkaError
from common.kafka.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from common.kafka.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from common.kafka.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from common.kafka.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


class KnownToken(NamedTuple):
    """A token with its secret as base64, which is the password of its user."""

    token: DelegationToken
    hmac: str


def create_token(
    client: AdminClient, owner: str | None, renewers: Iterable[str], max_lifetime_ms: int
) -> KnownToken:
    """Create a token of a user, None for that of this client; raises KafkaError, ValueError."""
    renewers = tuple(renewers)
    owner_type, owner_name = (None, None) if owner is None else parse_principal(owner)
    request = CreateDelegationTokenRequest(
        owner_principal_type=owner_type,
        owner_principal_name=owner_name,
        renewers=[
            CreatableRenewers(principal_type=kind, principal_name=name)
            for kind, name in map(parse_principal, renewers)
        ],
        max_lifetime_ms=max_lifetime_ms,
    )
    made = client.ask(request, CreateDelegationTokenResponse)
    raise_for(made.error_code, None)
    token = DelegationToken(
        made.token_id,
        f"{made.principal_type}:{made.principal_name}",
        f"{made.token_requester_principal_type}:{made.token_requester_principal_name}",
        renewers,
        made.issue_timestamp_ms,
        made.max_timestamp_ms,
        made.expiry_timestamp_ms,
    )
    return KnownToken(token, b64encode(made.hmac).decode())


def renew_token(client: AdminClient, hmac: bytes, period_ms: int) -> int:
    """Return the new end of a token; raises KafkaError."""
    request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
    response = client.ask(request, RenewDelegationTokenResponse)
    raise_for(response.error_code, None)
    return response.expiry_timestamp_ms


def expire_token(client: AdminClient, hmac: bytes, period_ms: int) -> int:
    """Return the new end of a token; a negative period ends it at once. Raises KafkaError."""
    request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
    response = client.ask(request, ExpireDelegationTokenResponse)
    raise_for(response.error_code, None)
    return response.expiry_timestamp_ms


def describe_tokens(client: AdminClient, owners: Iterable[str] | None) -> list[KnownToken]:
    """Return the tokens of some owners, of all for None; raises KafkaError, ValueError."""
    request = DescribeDelegationTokenRequest(
        owners=None
        if owners is None
        else [
            DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
            for kind, name in map(parse_principal, owners)
        ]
    )
    response = client.ask(request, DescribeDelegationTokenResponse)
    raise_for(response.error_code, None)
    return [
        KnownToken(
            DelegationToken(
                each.token_id,
                f"{each.principal_type}:{each.principal_name}",
                f"{each.token_requester_principal_type}:{each.token_requester_principal_name}",
                tuple(f"{one.principal_type}:{one.principal_name}" for one in each.renewers),
                each.issue_timestamp,
                each.max_timestamp,
                each.expiry_timestamp,
            ),
            b64encode(each.hmac).decode(),
        )
        for each in response.tokens
    ]


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
