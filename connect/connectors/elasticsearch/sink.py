"""ElasticsearchSink: the connector, which passes its settings to its tasks."""

import logging
from collections.abc import Mapping

from connect.connectors.elasticsearch.outcomes import OUTCOMES
from connect.connectors.elasticsearch.settings import CONFIG, VERSION
from millstream.connect import (
    ConfigDef,
    ConfigValue,
    SinkConnector,
    SinkTask,
    TopicPartition,
)
from millstream.connect.connectors import Settings

log = logging.getLogger(__name__)


class ElasticsearchSinkConnector(SinkConnector):
    """Gives every task the same settings: the group divides the partitions among them."""

    kafka_class = "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector"

    @classmethod
    def version(cls) -> str:
        return VERSION

    @classmethod
    def config(cls) -> ConfigDef:
        return CONFIG

    def validate(self, settings: Settings) -> dict[str, ConfigValue]:
        return OUTCOMES.refuse(settings, super().validate(settings))

    def start(self, settings: Settings) -> None:
        CONFIG.parse(settings)
        OUTCOMES.require(settings)
        for warning in OUTCOMES.warnings(settings):
            log.warning(warning)
        super().start(settings)

    def task_class(self) -> type[SinkTask]:
        from connect.connectors.elasticsearch.sink_task import ElasticsearchSinkTask

        return ElasticsearchSinkTask

    def task_configs(self, max_tasks: int) -> list[Settings]:
        return [self.settings] * max_tasks

    def alter_offsets(
        self, settings: Settings, offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        return True
