"""A task of ElasticsearchSink: `put` returns when the documents are written.

So offsets need no flush, and a batch that failed half way may come again whole. A server that is
away or says it has too much to do is given time: the same records come again, `max.retries` times,
and nothing is fetched meanwhile.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from elastic_transport import ConnectionError as NotReachedError
from elastic_transport import ConnectionTimeout, TransportError
from elasticsearch import ApiError, BadRequestError, Elasticsearch

from connect.connectors.elasticsearch.documents import Documents, Operation, mapping_of
from connect.connectors.elasticsearch.settings import CONFIG, VERSION
from millrace.connect import (
    ConnectException,
    DataException,
    RetriableException,
    Schema,
    SinkRecord,
    SinkTask,
)
from millrace.connect.connectors import Settings
from millrace.connect.data.schema import Type

log = logging.getLogger(__name__)

_BUSY: Final = {429, 502, 503, 504}
_CONFLICT: Final = "version_conflict_engine_exception"
_MALFORMED: Final = {
    "strict_dynamic_mapping_exception",
    "mapper_parsing_exception",
    "document_parsing_exception",
    "illegal_argument_exception",
    "action_request_validation_exception",
    "parsing_exception",
}
_MAX_BACKOFF_MS: Final = 60_000


class _BusyError(Exception):
    """The server will take it later."""


class ElasticsearchSinkTask(SinkTask):
    """Owns the client, and which schemas the indices know."""

    kafka_class = "io.confluent.connect.elasticsearch.ElasticsearchSinkTask"

    @classmethod
    def version(cls) -> str:
        return VERSION

    def start(self, settings: Settings) -> None:
        self._parsed = parsed = CONFIG.parse(settings)
        user, password = parsed["connection.username"], parsed["connection.password"]
        self._client = Elasticsearch(
            parsed["connection.url"],
            basic_auth=None if user is None else (user, password.value if password else ""),
            request_timeout=parsed["read.timeout.ms"] / 1000,
            max_retries=0,
            retry_on_timeout=False,
        )
        self._documents = Documents(parsed)
        self._known: set[tuple[str, Schema | None]] = set()
        self._failures = 0

    def put(self, records: Sequence[SinkRecord]) -> None:
        operations = list(self._operations(records))
        try:
            for batch in self._batches(operations):
                self._send(batch)
        except (_BusyError, NotReachedError, ConnectionTimeout) as error:
            self._try_again(error)
        except ApiError as error:
            if error.meta.status in _BUSY:
                self._try_again(error)
            raise ConnectException(f"Elasticsearch refuses: {error}") from error
        except TransportError as error:
            raise ConnectException(f"Elasticsearch cannot be asked: {error}") from error
        self._failures = 0

    def stop(self) -> None:
        self._client.close()

    def _operations(self, records: Sequence[SinkRecord]) -> Iterator[Operation]:
        for record in records:
            try:
                operation = self._documents.operation(record)
            except DataException as error:
                self._report_invalid(record, error)
                continue
            if operation is not None:
                yield operation

    def _report_invalid(self, record: SinkRecord, error: DataException) -> None:
        reporter = self.context.errant_record_reporter
        if reporter is not None:
            reporter.report(record, error)
        elif self._parsed["drop.invalid.message"]:
            log.warning("record is left out error=%s", error)
        else:
            raise error

    def _batches(self, operations: Sequence[Operation]) -> Iterator[list[Operation]]:
        batch: list[Operation] = []
        size_bytes = 0
        for operation in operations:
            is_full = len(batch) >= self._parsed["batch.size"]
            is_large = size_bytes + operation.size_bytes > self._parsed["bulk.size.bytes"]
            if batch and (is_full or is_large):
                yield batch
                batch, size_bytes = [], 0
            batch.append(operation)
            size_bytes += operation.size_bytes
        if batch:
            yield batch

    def _send(self, batch: Sequence[Operation]) -> None:
        for operation in batch:
            self._prepare(operation)
        # Lines that are written already are sent as they are, which the client's types do not say.
        lines: list[Any] = [line for operation in batch for line in operation.lines]
        answer = self._client.bulk(operations=lines)
        if not answer["errors"]:
            return
        is_busy = False
        for operation, item in zip(batch, answer["items"], strict=True):
            (result,) = item.values()
            if result["status"] in _BUSY:
                is_busy = True
            elif "error" in result:
                self._refused(operation, result["error"])
        if is_busy:
            raise _BusyError("Elasticsearch has too much to do")

    def _refused(self, operation: Operation, error: Mapping[str, Any]) -> None:
        kind = error["type"]
        if kind == _CONFLICT:
            log.debug("a newer document is there already record=%s", operation.record)
            return
        said = ConnectException(f"Elasticsearch refuses a document: {kind}: {error.get('reason')}")
        reporter = self.context.errant_record_reporter
        behavior = self._parsed["behavior.on.malformed.documents"].lower()
        if kind in _MALFORMED and reporter is not None:
            reporter.report(operation.record, said)
        elif kind in _MALFORMED and behavior != "fail":
            level = logging.WARNING if behavior == "warn" else logging.DEBUG
            log.log(level, "document is left out error=%s", said)
        else:
            raise said

    # --- indices ---

    def _prepare(self, operation: Operation) -> None:
        """Have the index, and have it know the schema's fields."""
        schema = operation.record.value_schema
        is_told = not self._parsed["schema.ignore"] and schema is not None
        known = schema if is_told else None
        if (operation.index_name, known) in self._known:
            return
        if (operation.index_name, None) not in self._known:
            try:
                self._client.indices.create(index=operation.index_name)
            except BadRequestError as error:
                if error.error != "resource_already_exists_exception":
                    raise
            self._known.add((operation.index_name, None))
        if known is not None and known.type is Type.STRUCT:
            self._map(operation.index_name, known)
            self._known.add((operation.index_name, known))

    def _map(self, index: str, schema: Schema) -> None:
        answer = self._client.indices.get_mapping(index=index)
        mapped = {name for one in answer.values() for name in one["mappings"].get("properties", {})}
        properties = mapping_of(schema)["properties"]
        missing = {name: one for name, one in properties.items() if name not in mapped}
        if missing:
            self._client.indices.put_mapping(index=index, properties=missing)

    def _try_again(self, error: Exception) -> None:
        self._failures += 1
        if self._failures > self._parsed["max.retries"]:
            self._failures = 0
            raise ConnectException(f"Elasticsearch does not take it: {error}") from error
        wait_ms = self._parsed["retry.backoff.ms"] * 2 ** (self._failures - 1)
        self.context.timeout(min(wait_ms, _MAX_BACKOFF_MS))
        raise RetriableException(f"Elasticsearch does not take it: {error}") from error
