"""Elasticsearch sink: writes records as documents by id, so a repeated record changes nothing.

The names of the class and its settings are those of Confluent's connector. `documents.py`
translates records to operations without IO; `sink_task.py` sends them. The connector needs
`millstream[elasticsearch]`, which is imported when a task starts.
"""

from connect.connectors.elasticsearch.sink import ElasticsearchSinkConnector

__all__ = ["ElasticsearchSinkConnector"]
