"""SCRAM credentials of users (KIP-900)."""

from common.credentials.scram import ScramCredential
from common.kafka.protocol.records.metadata import (
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)


class ScramImage(dict[tuple[str, int], ScramCredential]):
    """Owns every credential: user and mechanism's number -> credential."""

    def replay(self, record: UserScramCredentialRecord) -> None:
        """Set one credential."""
        self[record.name, record.mechanism] = ScramCredential(
            record.salt, record.stored_key, record.server_key, record.iterations
        )

    def replay_remove(self, record: RemoveUserScramCredentialRecord) -> None:
        """Take one credential away."""
        del self[record.name, record.mechanism]


def scram_record(
    user: str, mechanism: int, credential: ScramCredential
) -> UserScramCredentialRecord:
    """Return the record that sets a credential."""
    return UserScramCredentialRecord(
        name=user,
        mechanism=mechanism,
        salt=credential.salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=credential.iterations,
    )
