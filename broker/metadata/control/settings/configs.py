"""AlterConfigs and IncrementalAlterConfigs: settings of topics, brokers, client metrics and groups.

Each resource is handled separately: all its changes are made, or none. AlterConfigs replaces all
settings of a resource. Both requests result in the same records, one for each changed setting. A
broker setting is written even if it is unchanged, because that makes the broker read a file again
(KAFKA-14136).
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TypeVar

from broker.log.config import TOPIC_SETTINGS, LogConfig, SettingType, format_value
from broker.metadata.control.group_limits import validate_group, whole_number
from broker.metadata.control.leadership.broker_changes import clear_elr
from broker.metadata.control.limits import duplicates, validate_record_count
from broker.metadata.control.settings.client_metrics import validate_client_metrics
from broker.metadata.control.settings.min_isr import MIN_ISR, validate_min_isr
from broker.metadata.control.settings.operations import operated, replaced
from broker.metadata.control.steps import ITEMS_PER_STEP, decided
from broker.metadata.control.view import ClusterView, Decision, DecisionSteps, Moment
from broker.metadata.parts.configs import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    Resource,
)
from broker.metadata.topic_names import validate_topic_name
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from common.kafka.protocol.messages.alter_configs import AlterConfigsResource as ReplacedResource
from common.kafka.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from common.kafka.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse as IncrementalResourceResponse,
)
from common.kafka.protocol.records.metadata import ConfigRecord

R = TypeVar("R", ReplacedResource, AlterConfigsResource)
A = TypeVar("A", AlterConfigsResourceResponse, IncrementalResourceResponse)


def handle_alter_configs(
    view: ClusterView, request: AlterConfigsRequest, api_version: int, moment: Moment
) -> Decision | DecisionSteps:
    """Replace all settings of each resource."""

    def change() -> DecisionSteps:
        answers, records = yield from _change_each(
            view, request.resources, AlterConfigsResourceResponse, _replace
        )
        return Decision(
            AlterConfigsResponse(responses=answers), [] if request.validate_only else records
        )

    return decided(change(), is_large=len(request.resources) > ITEMS_PER_STEP)


def handle_incremental_alter_configs(
    view: ClusterView, request: IncrementalAlterConfigsRequest, api_version: int, moment: Moment
) -> Decision | DecisionSteps:
    """Change the settings of each resource by operations."""

    def change() -> DecisionSteps:
        answers, records = yield from _change_each(
            view, request.resources, IncrementalResourceResponse, _operate
        )
        return Decision(
            IncrementalAlterConfigsResponse(responses=answers),
            [] if request.validate_only else records,
        )

    return decided(change(), is_large=len(request.resources) > ITEMS_PER_STEP)


def _change_each(
    view: ClusterView,
    resources: Sequence[R],
    answer_class: type[A],
    change: Callable[[ClusterView, R], list[Message]],
) -> Generator[Sequence[Message], None, tuple[list[A], list[Message]]]:
    """Change each resource separately; return the answers, and all records."""
    answers: list[A] = []
    records: list[Message] = []
    repeated = duplicates(map(_key, resources))
    for number, resource in enumerate(resources, 1):
        if not number % ITEMS_PER_STEP:
            yield ()
        answer = answer_class(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            error_message=None,
        )
        try:
            _validate_once(_key(resource), repeated)
            records += change(view, resource)
        except KafkaError as error:
            answer.error_code, answer.error_message = error.code, error.message
        answers.append(answer)
        validate_record_count(len(records))
    return answers, records


def _key(resource: ReplacedResource | AlterConfigsResource) -> str:
    return f"{resource.resource_type} {resource.resource_name}"


def _validate_once(key: str, repeated: set[str]) -> None:
    if key in repeated:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")


def _replace(view: ClusterView, resource: ReplacedResource) -> list[Message]:
    wanted = replaced(resource.configs)
    return _changes(view, (resource.resource_type, resource.resource_name), wanted, set(wanted))


def _operate(view: ClusterView, resource: AlterConfigsResource) -> list[Message]:
    key = (resource.resource_type, resource.resource_name)
    wanted = operated(
        view.image.configs.settings_of(*key),
        resource.configs,
        lambda name: _list_default(view, resource.resource_type, name),
    )
    return _changes(view, key, wanted, {config.name for config in resource.configs})


def _list_default(view: ClusterView, resource_type: int, name: str) -> str | None:
    """Return the default of a setting of type LIST, None for other types."""
    if resource_type == BROKER_RESOURCE:
        return view.config.broker_list_default(name)
    if resource_type == TOPIC_RESOURCE:
        setting = TOPIC_SETTINGS.get(name)
        if setting is not None and setting.type == SettingType.LIST:
            return format_value(getattr(view.config.log, setting.field_name)) or ""
    return None


def _changes(
    view: ClusterView, resource: Resource, wanted: Mapping[str, str], named: set[str]
) -> list[Message]:
    """Return the records that make the settings of `resource` exactly `wanted`."""
    validate_settings(view, resource, wanted)
    current = view.image.configs.settings_of(*resource)
    is_always_written = resource[0] == BROKER_RESOURCE
    settings = [
        ConfigRecord(
            resource_type=resource[0],
            resource_name=resource[1],
            name=name,
            value=wanted.get(name),
        )
        for name in sorted({*current, *wanted, *named})
        if current.get(name) != wanted.get(name) or (is_always_written and name in named)
    ]
    validate_min_isr(view, settings)
    records: list[Message] = [*settings]
    if view.is_elr_enabled and current.get(MIN_ISR) != wanted.get(MIN_ISR):
        topics = view.image.topics.by_name
        is_topic = resource[0] == TOPIC_RESOURCE
        records += clear_elr(view, [topics[resource[1]]] if is_topic else topics.values())
    return records


def validate_settings(view: ClusterView, resource: Resource, wanted: Mapping[str, str]) -> None:
    """Raise KafkaError if `resource` does not exist or cannot have all of `wanted`."""
    resource_type, name = resource
    if resource_type == TOPIC_RESOURCE:
        _validate_topic(view, name, wanted)
    elif resource_type == BROKER_RESOURCE:
        _validate_broker(view, name, wanted)
    elif resource_type == GROUP_RESOURCE:
        validate_group(name, wanted, view.config.group_limits)
    elif resource_type == CLIENT_METRICS_RESOURCE:
        validate_client_metrics(name, wanted)
    else:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")


def _validate_topic(view: ClusterView, name: str, wanted: Mapping[str, str]) -> None:
    if name == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    validate_topic_name(name)
    if name not in view.image.topics.by_name:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
        )
    LogConfig.from_settings(wanted, view.config.log)


def _validate_broker(view: ClusterView, name: str, wanted: Mapping[str, str]) -> None:
    if name != "":
        node_id = whole_number(name)
        if node_id is None:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "Unable to parse broker name as a base 10 number."
            )
        if node_id < 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid negative broker ID.")
        known = {view.config.node_id, *view.image.brokers, *view.image.controllers}
        if node_id not in known:
            raise KafkaError(
                ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {node_id} found."
            )
    view.config.validate_broker_settings(wanted, is_for_all=name == "")
