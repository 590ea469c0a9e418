"""SCRAM credentials of users, through the admin client; the password never leaves this process."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from common.credentials.scram import SCRAM_MECHANISMS, ScramMechanism, salted_password
from common.kafka.admin.client import AdminClient, To, error_of, raise_for
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from common.kafka.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)

SALT_BYTES = 24


class NewCredential(NamedTuple):
    """A credential to set: the salted password, with the salt and the iterations of it."""

    mechanism: ScramMechanism
    iterations: int
    salt: bytes
    salted: bytes

    @classmethod
    def of(
        cls, mechanism: ScramMechanism, password: str, iterations: int, salt: bytes
    ) -> "NewCredential":
        """Salt a password."""
        return cls(
            mechanism, iterations, salt, salted_password(mechanism, password, salt, iterations)
        )


def describe_scram(client: AdminClient, users: Iterable[str] | None) -> Mapping[str, list[str]]:
    """Return what each user has, as `SCRAM-SHA-256=iterations=4096`; None asks for all users."""
    request = DescribeUserScramCredentialsRequest(
        users=None if users is None else [UserName(name=user) for user in users]
    )
    response = client.ask(request, DescribeUserScramCredentialsResponse)
    raise_for(response.error_code, response.error_message)
    found: dict[str, list[str]] = {}
    for result in response.results:
        if result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
            continue
        raise_for(result.error_code, result.error_message)
        found[result.user] = [
            f"{SCRAM_MECHANISMS[info.mechanism].name}=iterations={info.iterations}"
            for info in result.credential_infos
            if info.mechanism in SCRAM_MECHANISMS
        ]
    return found


def alter_scram(
    client: AdminClient,
    user: str,
    additions: Iterable[NewCredential],
    deletions: Iterable[ScramMechanism],
) -> None:
    """Set and delete credentials of one user; raises the refusal."""
    request = AlterUserScramCredentialsRequest(
        upsertions=[
            ScramCredentialUpsertion(
                name=user,
                mechanism=new.mechanism.number,
                iterations=new.iterations,
                salt=new.salt,
                salted_password=new.salted,
            )
            for new in additions
        ],
        deletions=[
            ScramCredentialDeletion(name=user, mechanism=mechanism.number)
            for mechanism in deletions
        ],
    )
    response = client.ask(request, AlterUserScramCredentialsResponse, To.CONTROLLER)
    for result in response.results:
        if result.error_code:
            raise error_of(result.error_code, result.error_message)
