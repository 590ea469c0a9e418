"""Creates a task's work from its configuration, in the task's own thread."""

from collections.abc import Callable
from typing import Any, Final, cast

from connect.definitions.connector import CLASS, topics_of
from connect.definitions.validation import connector_class, definition_of
from connect.errors.dead_letters import DeadLetterSettings
from connect.errors.tolerance import ErrorSettings, Tolerance
from connect.herder.effects import StartTask
from connect.local_files import require_files
from connect.worker.client_settings import (
    CONSUMER_DEFAULTS,
    PRODUCER_DEFAULTS,
    TRANSACTION_DEFAULTS,
)
from connect.worker.environment import Environment, filled
from connect.worker.offsets.kafka_store import own_offsets
from connect.worker.record_plugins import converters_of, stages_of
from connect.worker.tasks.at_least_once import AtLeastOnce
from connect.worker.tasks.boundaries import boundary_of
from connect.worker.tasks.exactly_once import ExactlyOnce, TopicOffsets, Transactions
from connect.worker.tasks.reporting import SinkReport, SourceReport
from connect.worker.tasks.sink import SinkWork
from connect.worker.tasks.source import Sender, SourceParts, SourceWork
from connect.worker.tasks.steps import Steps
from connect.worker.tasks.subscription import Subscription
from connect.worker.tasks.thread import TaskCounts, TaskThread, Work
from connect.worker.topics import TopicCreation, topic_groups
from connect.worker.transactions import transactional_id
from millstream.connect.connectors import SinkTask, SourceTask

_MAX_POLL_RECORDS: Final = 500
_MAX_POLL_SETTING: Final = "consumer.override.max.poll.records"


def work_maker(environment: Environment, start: StartTask) -> Callable[[TaskThread], Work]:
    """Return a function that creates the work; it raises for an invalid configuration."""

    def make(thread: TaskThread) -> Work:
        variables = environment.variables(start.connector_config, start.task_config)
        thread.concealing = environment.concealing(start.connector_config, variables)
        config = filled(start.connector_config, variables)
        task_config = filled(start.task_config, variables)
        require_files(config)
        connector = connector_class(environment.plugins, config)
        task: Any = connector().task_class()()
        if isinstance(task, SourceTask):
            return _source(environment, thread, task, config, task_config, start.is_exactly_once)
        if isinstance(task, SinkTask):
            return _sink(environment, thread, task, config, task_config)
        raise TypeError(f"{type(task).__name__} of {config[CLASS]} is no task")

    return make


def _parsed(environment: Environment, config: dict[str, str]) -> dict[str, Any]:
    plugins = environment.plugins
    definition = definition_of(plugins, connector_class(plugins, config), config)
    return definition.parse(config, plugins.find)


def _source(
    environment: Environment,
    thread: TaskThread,
    task: SourceTask,
    config: dict[str, str],
    task_config: dict[str, str],
    is_exactly_once: bool,
) -> SourceWork:
    settings, name = environment.settings, thread.task
    counts = TaskCounts("source")
    errors = ErrorSettings.of(_parsed(environment, config))
    steps = Steps(
        Tolerance(errors, counts.errors),
        SourceReport(name, errors, counts.errors, thread.concealing),
        thread.control.wait,
    )
    admin = environment.client("admin", config, **{"client.id": f"connector-adminclient-{name}"})
    groups = topic_groups(config) if settings["topic.creation.enable"] else []
    defaults = TRANSACTION_DEFAULTS if is_exactly_once else PRODUCER_DEFAULTS
    producer = {**defaults, "client.id": f"connector-producer-{name}"}
    own = own_offsets(environment, config)
    offsets = environment.offsets if own is None else own
    parts = SourceParts(
        task=task,
        config=task_config,
        stages=stages_of(environment.plugins, config),
        converters=converters_of(environment.plugins, settings, config),
        steps=steps,
        producer=environment.client("producer", config, **producer),
        topics=TopicCreation(admin, groups),
        offsets=offsets,
        flush_interval_ms=settings["offset.flush.interval.ms"],
        flush_timeout_ms=settings["offset.flush.timeout.ms"],
        own_offsets=own,
    )
    if not is_exactly_once:
        return source_work(thread, parts, counts, None)
    transactions = Transactions(
        transactional_id(settings, name),
        boundary_of(config, parts.flush_interval_ms),
        cast("TopicOffsets", offsets),
    )
    return source_work(thread, parts, counts, transactions)


def source_work(
    thread: TaskThread, parts: SourceParts, counts: TaskCounts, transactions: Transactions | None
) -> SourceWork:
    """Return the work of a source task: exactly once with transactions, else at least once."""
    sender = Sender(thread, parts, counts)
    if transactions is None:
        return SourceWork(thread, parts, sender, AtLeastOnce(thread, parts, sender))
    return SourceWork(thread, parts, sender, ExactlyOnce(thread, parts, sender, transactions))


def _sink(
    environment: Environment,
    thread: TaskThread,
    task: SinkTask,
    config: dict[str, str],
    task_config: dict[str, str],
) -> SinkWork:
    settings, name = environment.settings, thread.task
    counts = TaskCounts("sink")
    parsed = _parsed(environment, config)
    errors = ErrorSettings.of(parsed)
    letters_to = DeadLetterSettings.of(parsed)
    report = SinkReport(name, errors, letters_to, counts.errors, thread.concealing)
    consumer = {
        **CONSUMER_DEFAULTS,
        "client.id": f"connector-consumer-{name}",
        "group.id": f"connect-{name.connector}",
    }
    letters = {**PRODUCER_DEFAULTS, "client.id": f"connector-dlq-producer-{name}"}
    return SinkWork(
        thread,
        counts,
        task=task,
        config=task_config,
        subscription=Subscription(topics_of(config), config.get("topics.regex", "").strip()),
        stages=stages_of(environment.plugins, config),
        converters=converters_of(environment.plugins, settings, config),
        steps=Steps(Tolerance(errors, counts.errors), report, thread.control.wait),
        report=report,
        consumer=environment.client("consumer", config, **consumer),
        dead_letter_clients=(
            environment.client("producer", config, **letters),
            environment.client("admin", config, **{"client.id": f"connector-adminclient-{name}"}),
        ),
        max_poll_records=int(config.get(_MAX_POLL_SETTING, _MAX_POLL_RECORDS)),
        flush_interval_ms=settings["offset.flush.interval.ms"],
    )
