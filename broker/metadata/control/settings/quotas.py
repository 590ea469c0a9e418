"""AlterClientQuotas and DescribeClientQuotas: quotas of users, clients and addresses (KIP-546)."""

from ipaddress import ip_address

from broker.metadata.control.limits import duplicates, validate_record_count
from broker.metadata.control.steps import ITEMS_PER_STEP, decided
from broker.metadata.control.view import ClusterView, Decision, DecisionSteps, Moment
from broker.quotas.client_quotas import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
    QuotaEntity,
    quota_entity,
)
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntryData,
    EntryData,
    OpData,
)
from common.kafka.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    ValueData,
)
from common.kafka.protocol.messages.describe_client_quotas import EntryData as DescribedEntry
from common.kafka.protocol.records.metadata import ClientQuotaRecord
from common.kafka.protocol.records.metadata import QuotaEntity as RecordEntity

INT64_MAX, INT32_MAX = 2**63 - 1, 2**31 - 1
MAX_FRACTION = 1e-6

# By key: the highest value of an integer quota, None for one that may be a fraction.
USER_AND_CLIENT_QUOTAS: dict[str, int | None] = {
    PRODUCER_BYTE_RATE: INT64_MAX,
    CONSUMER_BYTE_RATE: INT64_MAX,
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
}
IP_QUOTAS: dict[str, int | None] = {CONNECTION_CREATION_RATE: INT32_MAX}

EXACT, DEFAULT, ANY = range(3)  # match types of a filter


def handle_alter_client_quotas(
    view: ClusterView, request: AlterClientQuotasRequest, api_version: int, moment: Moment
) -> Decision | DecisionSteps:
    """Change the quotas of each entity separately."""
    return decided(_alter_each(view, request), is_large=len(request.entries) > ITEMS_PER_STEP)


def _alter_each(view: ClusterView, request: AlterClientQuotasRequest) -> DecisionSteps:
    records: list[Message] = []
    answers = []
    seen: set[QuotaEntity] = set()
    for number, entry in enumerate(request.entries, 1):
        if not number % ITEMS_PER_STEP:
            yield ()
        answer = AlterClientQuotasResponseEntryData(entity=entry.entity, error_message=None)
        try:
            entity = _entity(entry)
            if entity in seen:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, f"Ignoring duplicate entity {dict(entity)}"
                )
            seen.add(entity)
            records += _alter(view, entity, entry.ops)
        except KafkaError as error:
            answer.error_code, answer.error_message = error.code, error.message
        answers.append(answer)
        validate_record_count(len(records))
    return Decision(
        AlterClientQuotasResponse(entries=answers), [] if request.validate_only else records
    )


def _entity(entry: EntryData) -> QuotaEntity:
    parts: dict[str, str | None] = {}
    for part in entry.entity:
        if part.entity_type not in {USER, CLIENT_ID, IP}:
            problem = f"Unhandled client quota entity type: {part.entity_type}"
        elif part.entity_type in parts:
            problem = f"Invalid client quota entity, duplicate entity entry {part.entity_type}"
        elif part.entity_name == "":
            problem = f"Empty {part.entity_type} not supported"
        else:
            parts[part.entity_type] = part.entity_name
            continue
        raise KafkaError(ErrorCode.INVALID_REQUEST, problem)
    if not parts:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty client quota entity")
    if IP in parts:
        _validate_ip(parts)
    return quota_entity(parts)


def _validate_ip(parts: dict[str, str | None]) -> None:
    if len(parts) > 1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Invalid quota entity combination, IP entity should not be combined with User or "
            "ClientId",
        )
    address = parts[IP]
    try:
        if address is not None:
            ip_address(address)
    except ValueError as error:
        # Kafka resolves a host name here; a decision must not depend on a resolver.
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{address} is not a valid IP.") from error


def _alter(view: ClusterView, entity: QuotaEntity, operations: list[OpData]) -> list[Message]:
    if repeated := duplicates(operation.key for operation in operations):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Duplicate quota key {min(repeated)} not updating quota for this entity "
            f"{dict(entity)}",
        )
    current = view.image.client_quotas.get(entity, {})
    records: list[Message] = []
    for operation in operations:
        key = operation.key
        if not operation.remove:
            _validate_value(entity, key, operation.value)
        is_change = key in current if operation.remove else current.get(key) != operation.value
        if is_change:
            records.append(
                ClientQuotaRecord(
                    entity=[
                        RecordEntity(entity_type=kind, entity_name=name) for kind, name in entity
                    ],
                    key=key,
                    value=0.0 if operation.remove else operation.value,
                    remove=operation.remove,
                )
            )
    return records


def _validate_value(entity: QuotaEntity, key: str, value: float) -> None:
    keys = IP_QUOTAS if entity[0][0] == IP else USER_AND_CLIENT_QUOTAS
    if key not in keys:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Invalid configuration key {key}")
    if not value > 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Quota {key} must be greater than 0")
    highest = keys[key]
    if highest is None:
        return
    if value > highest:
        kind = "an INT" if highest == INT32_MAX else "a LONG"
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Proposed value for {key} is too large for {kind}."
        )
    if value % 1.0 > MAX_FRACTION:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{key} cannot be a fractional value.")


# --- describe ---


def handle_describe_client_quotas(
    view: ClusterView, request: DescribeClientQuotasRequest, api_version: int, moment: Moment
) -> Decision:
    """Answer with the quotas of the entities that match all components of the filter."""
    components = _filter(request.components)
    entries = [
        _described(entity, quotas)
        for entity, quotas in view.image.client_quotas.items()
        if _matches(dict(entity), components, is_strict=request.strict)
    ]
    return Decision(DescribeClientQuotasResponse(error_message=None, entries=entries))


def _filter(components: list[ComponentData]) -> dict[str, ComponentData]:
    result: dict[str, ComponentData] = {}
    for component in components:
        kind = component.entity_type
        if kind == "":
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
        if kind in result:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Entity type {kind} cannot appear more than once in the filter.",
            )
        if kind not in {USER, CLIENT_ID, IP}:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        if component.match_type not in {EXACT, DEFAULT, ANY}:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Unknown match type {component.match_type}"
            )
        _validate_match(component)
        result[kind] = component
    if IP in result and len(result) > 1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component.",
        )
    return result


def _validate_match(component: ComponentData) -> None:
    if component.match_type == EXACT:
        if component.match is None:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "Request specified MATCH_TYPE_EXACT, but set match string to null.",
            )
    elif component.match is not None:
        name = "DEFAULT" if component.match_type == DEFAULT else "SPECIFIED"
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Request specified MATCH_TYPE_{name}, but also specified a match string.",
        )


def _matches(
    entity: dict[str, str | None], components: dict[str, ComponentData], *, is_strict: bool
) -> bool:
    if is_strict and len(entity) != len(components):
        return False
    return all(
        kind in entity and (component.match_type == ANY or entity[kind] == component.match)
        for kind, component in components.items()
    )


def _described(entity: QuotaEntity, quotas: dict[str, float]) -> DescribedEntry:
    return DescribedEntry(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        values=[ValueData(key=key, value=value) for key, value in quotas.items()],
    )
