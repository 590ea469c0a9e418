"""ElasticsearchSink: the connector, which passes its settings to its tasks."""

from connect.connectors.elasticsearch.outcomes import OUTCOMES
from connect.connectors.original import OriginalSinkConnector
from millstream.connect import SinkTask


class ElasticsearchSinkConnector(OriginalSinkConnector):
    """Writes records as documents into the indices of an Elasticsearch server."""

    kafka_class = "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector"
    outcomes = OUTCOMES

    def task_class(self) -> type[SinkTask]:
        from connect.connectors.elasticsearch.sink_task import ElasticsearchSinkTask

        return ElasticsearchSinkTask
