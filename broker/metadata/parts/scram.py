"""SCRAM credentials of users (KIP-900).

The credential of the user with an empty name, which no client can be, holds a secret of the cluster
in its server key: the answers about unknown users follow from it (`broker.security.unknown_users`).
"""

from collections import Counter

from broker.security.unknown_users import Shape, shape_of, stand_in
from common.credentials.scram import MIN_ITERATIONS, SCRAM_SHA_256, ScramCredential, ScramMechanism
from common.kafka.protocol.records.metadata import (
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

SECRET_KEEPER = "", SCRAM_SHA_256.number
SECRET_BYTES = 32


class ScramImage(dict[tuple[str, int], ScramCredential]):
    """Owns every credential: user and mechanism's number -> credential.

    Invariant: `_shapes` counts the shapes of the credentials of users, by mechanism.
    """

    def __init__(self) -> None:
        super().__init__()
        self._shapes: dict[int, Counter[Shape]] = {}

    def replay(self, record: UserScramCredentialRecord) -> None:
        """Set one credential."""
        key = record.name, record.mechanism
        self._count(key, -1)
        self[key] = ScramCredential(
            record.salt, record.stored_key, record.server_key, record.iterations
        )
        self._count(key, 1)

    def replay_remove(self, record: RemoveUserScramCredentialRecord) -> None:
        """Take one credential away."""
        key = record.name, record.mechanism
        self._count(key, -1)
        del self[key]

    def _count(self, key: tuple[str, int], change: int) -> None:
        credential = self.get(key)
        if credential is None or key == SECRET_KEEPER:
            return
        shapes, shape = self._shapes.setdefault(key[1], Counter()), shape_of(credential)
        shapes[shape] += change
        if not shapes[shape]:
            del shapes[shape]

    def answer_about_unknown(
        self, mechanism: ScramMechanism, user: str, spare_secret: bytes
    ) -> tuple[bytes, int]:
        """Return the salt and the iterations of a user that does not exist.

        The secret is another one, that of a process, while the cluster has none: it has no user.
        """
        keeper = self.get(SECRET_KEEPER)
        secret = spare_secret if keeper is None else keeper.server_key
        return stand_in(secret, self._shapes.get(mechanism.number, {}), mechanism.name, user)


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


def secret_record(secret: bytes) -> UserScramCredentialRecord:
    """Return the record of the cluster's secret, of SECRET_BYTES random bytes."""
    user, mechanism = SECRET_KEEPER
    nobody = ScramCredential(b"secret", secret, secret, MIN_ITERATIONS)
    return scram_record(user, mechanism, nobody)
