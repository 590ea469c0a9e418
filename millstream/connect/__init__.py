"""What the author of a connector, converter or transformation imports.

    from millstream.connect import ConfigDef, Schema, SourceConnector, SourceRecord, SourceTask

The classes live here, not in the program that runs them (`connect/`), so that a connector's own
project imports only `millstream`: the worker and the connector share one class of each name.
Nothing here imports a program or does IO, but `config.types.imported_class`.
"""

from millstream.connect.config.config_def import (
    NO_DEFAULT_VALUE,
    ConfigDef,
    ConfigKey,
    ConfigValue,
    Recommender,
)
from millstream.connect.config.types import Importance, Password, Width
from millstream.connect.connectors import (
    ConnectorContext,
    ConnectorTransactionBoundaries,
    ErrantRecordReporter,
    ExactlyOnceSupport,
    OffsetStorageReader,
    RecordMetadata,
    SinkConnector,
    SinkTask,
    SinkTaskContext,
    SourceConnector,
    SourceTask,
    SourceTaskContext,
    TaskMetric,
    TopicPartition,
    TransactionContext,
)
from millstream.connect.data.records import Header, Headers, SinkRecord, SourceRecord
from millstream.connect.data.schema import Field, Schema, SchemaAndValue, Struct, Type
from millstream.connect.errors import (
    ConfigException,
    ConnectException,
    DataException,
    RetriableException,
)
from millstream.connect.plugins import (
    ConfigProvider,
    Converter,
    HeaderConverter,
    Predicate,
    Transformation,
)

__all__ = [
    "NO_DEFAULT_VALUE",
    "ConfigDef",
    "ConfigException",
    "ConfigKey",
    "ConfigProvider",
    "ConfigValue",
    "ConnectException",
    "ConnectorContext",
    "ConnectorTransactionBoundaries",
    "Converter",
    "DataException",
    "ErrantRecordReporter",
    "ExactlyOnceSupport",
    "Field",
    "Header",
    "HeaderConverter",
    "Headers",
    "Importance",
    "OffsetStorageReader",
    "Password",
    "Predicate",
    "Recommender",
    "RecordMetadata",
    "RetriableException",
    "Schema",
    "SchemaAndValue",
    "SinkConnector",
    "SinkRecord",
    "SinkTask",
    "SinkTaskContext",
    "SourceConnector",
    "SourceRecord",
    "SourceTask",
    "SourceTaskContext",
    "Struct",
    "TaskMetric",
    "TopicPartition",
    "TransactionContext",
    "Transformation",
    "Type",
    "Width",
]
