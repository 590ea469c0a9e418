"""A task of ElasticsearchSink: `put` returns when the documents are written.

So offsets need no flush, and a batch that was written in part may be written again. If a server is
unreachable or busy, the worker waits and puts the same records again, `max.retries` times. It
fetches no other records during that time.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from elastic_transport import ConnectionError as NotReachedError
from elastic_transport import ConnectionTimeout, TransportError
from elasticsearch import ApiError, BadRequestError, Elasticsearch

from connect.connectors.elasticsearch.documents import (
    Documents,
    Operation,
    mapping_of,
    missing_in,
)
from connect.connectors.elasticsearch.settings import CONFIG
from connect.connectors.original import VERSION
from millstream.connect import (
    ConnectException,
    DataException,
    RetriableException,
    Schema,
    SinkRecord,
    SinkTask,
)
from millstream.connect.connectors import Settings
from millstream.connect.data.schema import Type

log = logging.getLogger(__name__)

_BUSY: Final = {429, 502, 503, 504}
_CONFLICT: Final = "version_conflict_engine_exception"
_BAD_REQUEST: Final = 400
_TOO_LARGE: Final = 413
_OF_DOCUMENTS: Final = (_BAD_REQUEST, _TOO_LARGE)
"""Statuses that concern the documents, and not the server or the user's rights."""
_MAX_BACKOFF_MS: Final = 60_000


class _BusyError(Exception):
    """The server is busy; a retry may succeed."""


class ElasticsearchSinkTask(SinkTask):
    """Owns the client, and the set of indices and schemas that exist on the server."""

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
        self._schemaless: frozenset[str] = frozenset(parsed["topic.schema.ignore"])
        self._failures = 0
        self._reported: set[tuple[str, int | None, int]] = set()
        """Reported records; they may come again together with records that were not written."""

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
            raise ConnectException(f"Elasticsearch cannot be reached: {error}") from error
        self._failures = 0
        self._reported.clear()

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
        if self._report(record, error):
            return
        if self._parsed["drop.invalid.message"]:
            log.warning("record is dropped error=%s", error)
        else:
            raise error

    def _report(self, record: SinkRecord, error: Exception) -> bool:
        """Report a record once; return False if errors are not tolerated."""
        reporter = self.context.errant_record_reporter
        if reporter is None:
            return False
        place = (record.topic, record.kafka_partition, record.kafka_offset)
        if place not in self._reported:
            self._reported.add(place)
            reporter.report(record, error)
        return True

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
        prepared = [operation for operation in batch if self._is_prepared(operation)]
        if prepared:
            self._send_prepared(prepared)

    def _is_prepared(self, operation: Operation) -> bool:
        """Add a document's fields to the index; return False if the server refuses them."""
        try:
            self._prepare(operation)
        except ApiError as error:
            if error.meta.status not in _OF_DOCUMENTS:
                raise
            self._refused(operation, _told(error))
            return False
        return True

    def _send_prepared(self, batch: Sequence[Operation]) -> None:
        """Send a batch. If the server refuses it as a whole, send its halves.

        So one bad document does not affect the others.
        """
        try:
            self._send_at_once(batch)
        except ApiError as error:
            if error.meta.status not in _OF_DOCUMENTS:
                raise
            if len(batch) == 1:
                self._refused(batch[0], _told(error))
                return
            log.warning("request is refused, its halves are sent error=%s", error)
            middle = len(batch) // 2
            self._send_prepared(batch[:middle])
            self._send_prepared(batch[middle:])

    def _send_at_once(self, batch: Sequence[Operation]) -> None:
        # The client accepts serialized lines, although its types do not allow them.
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
                self._refused(operation, result["error"], result["status"])
        if is_busy:
            raise _BusyError("Elasticsearch is busy")

    def _refused(
        self, operation: Operation, error: Mapping[str, Any], status: int = _BAD_REQUEST
    ) -> None:
        kind = error["type"]
        if kind == _CONFLICT:
            log.debug("a newer document exists record=%s", operation.record)
            return
        said = ConnectException(f"Elasticsearch refuses a document: {kind}: {error.get('reason')}")
        behavior = self._parsed["behavior.on.malformed.documents"].lower()
        if status not in _OF_DOCUMENTS:
            raise said
        if self._report(operation.record, said):
            return
        if behavior != "fail":
            level = logging.WARNING if behavior == "warn" else logging.DEBUG
            log.log(level, "document is dropped error=%s", said)
        else:
            raise said

    # --- indices ---

    def _prepare(self, operation: Operation) -> None:
        """Create the index if it is missing, and add the schema's fields to its mapping."""
        schema = operation.record.value_schema
        ignores = self._parsed["schema.ignore"] or operation.record.topic in self._schemaless
        is_told = not ignores and schema is not None
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
        # An alias may have several indices.
        mapped: dict[str, Any] = {"properties": {}}
        for one in answer.values():
            properties = mapped["properties"] | one["mappings"].get("properties", {})
            mapped = {**mapped, **one["mappings"], "properties": properties}
        missing = missing_in(mapped, mapping_of(schema)["properties"])
        if missing:
            self._client.indices.put_mapping(index=index, properties=missing)

    def _try_again(self, error: Exception) -> None:
        self._failures += 1
        if self._failures > self._parsed["max.retries"]:
            self._failures = 0
            raise ConnectException(f"The request to Elasticsearch failed: {error}") from error
        wait_ms = self._parsed["retry.backoff.ms"] * 2 ** (self._failures - 1)
        self.context.timeout(min(wait_ms, _MAX_BACKOFF_MS))
        raise RetriableException(f"The request to Elasticsearch failed: {error}") from error


def _told(error: ApiError) -> dict[str, Any]:
    """Return the error of a response in the form of an item in a bulk response."""
    body = error.body if isinstance(error.body, dict) else {}
    said = body.get("error")
    found = said if isinstance(said, dict) else {}
    return {"type": found.get("type", error.error), "reason": found.get("reason", str(error))}
