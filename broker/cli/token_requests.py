"""Delegation tokens, through the admin client."""

from base64 import b64encode
from collections.abc import Iterable
from typing import NamedTuple

from broker.security.delegation_tokens import DelegationToken
from broker.security.principal import parse_principal
from common.kafka.admin.client import AdminClient, raise_for
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
