"""AlterUserScramCredentials, as Kafka's ScramControlManager decides it (KIP-900).

Each user for itself: with one change of a user refused, nothing of that user changes.
"""

from broker.metadata.control.limits import validate_record_count
from broker.metadata.control.view import ClusterView, Decision, Moment
from broker.metadata.parts.scram import (
    SECRET_BYTES,
    SECRET_KEEPER,
    scram_record,
    secret_record,
)
from common.credentials.scram import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    SCRAM_MECHANISMS,
    credential_from,
)
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from common.kafka.protocol.records.metadata import (
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

Change = ScramCredentialDeletion | ScramCredentialUpsertion


def handle_alter_user_scram_credentials(
    view: ClusterView,
    request: AlterUserScramCredentialsRequest,
    api_version: int,
    moment: Moment,
) -> Decision:
    """Delete and set credentials; answer once for each user that is named."""
    changes_of: dict[str, list[Change]] = {}
    changes: list[Change] = [*request.deletions, *request.upsertions]
    for change in changes:
        changes_of.setdefault(change.name, []).append(change)
    records: list[Message] = []
    results = []
    for user, its_changes in changes_of.items():
        result = AlterUserScramCredentialsResult(user=user, error_message=None)
        try:
            records += _change(view, user, its_changes)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
        results.append(result)
    records += missing_secret(view, records)
    validate_record_count(len(records))
    return Decision(AlterUserScramCredentialsResponse(results=results), records)


def missing_secret(view: ClusterView, records: list[Message]) -> list[Message]:
    """Return the record of the cluster's secret if it has none and has, or gets, a credential."""
    has_some = bool(view.image.scram) or any(
        isinstance(record, UserScramCredentialRecord) for record in records
    )
    if not has_some or SECRET_KEEPER in view.image.scram:
        return []
    return [secret_record(view.random.randbytes(SECRET_BYTES))]


def _change(view: ClusterView, user: str, changes: list[Change]) -> list[Message]:
    if not user:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if len({change.mechanism for change in changes}) < len(changes):
        raise KafkaError(
            ErrorCode.DUPLICATE_RESOURCE,
            "A user credential cannot be altered twice in the same request",
        )
    return [
        _deletion(view, change)
        if isinstance(change, ScramCredentialDeletion)
        else _upsertion(change)
        for change in changes
    ]


def _deletion(view: ClusterView, deletion: ScramCredentialDeletion) -> Message:
    _validate_mechanism(deletion.mechanism)
    if (deletion.name, deletion.mechanism) not in view.image.scram:
        raise KafkaError(
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to delete a user credential that does not exist",
        )
    return RemoveUserScramCredentialRecord(name=deletion.name, mechanism=deletion.mechanism)


def _upsertion(upsertion: ScramCredentialUpsertion) -> Message:
    _validate_mechanism(upsertion.mechanism)
    problem = None
    if upsertion.iterations < MIN_ITERATIONS:
        problem = "Too few iterations"
    elif upsertion.iterations > MAX_ITERATIONS:
        problem = "Too many iterations"
    elif not upsertion.salt or not upsertion.salted_password:
        problem = "The salt and the salted password must not be empty"
    if problem is not None:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, problem)
    credential = credential_from(
        SCRAM_MECHANISMS[upsertion.mechanism],
        bytes(upsertion.salted_password),
        bytes(upsertion.salt),
        upsertion.iterations,
    )
    return scram_record(upsertion.name, upsertion.mechanism, credential)


def _validate_mechanism(number: int) -> None:
    if number not in SCRAM_MECHANISMS:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
