"""Elasticsearch sink: records as documents, by id, so that one that comes twice changes nothing.

Names of the class and its settings are those of Confluent's connector. `documents.py` says what a
record is to an index and does nothing; `sink_task.py` sends. Needs `millrace[elasticsearch]`, which
is imported when a task starts.
"""

from connect.connectors.elasticsearch.sink import ElasticsearchSinkConnector

__all__ = ["ElasticsearchSinkConnector"]
