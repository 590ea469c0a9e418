"""The index in Elasticsearch, through its official client.

Documents are written with their version as external version: Elasticsearch itself refuses one that
is older than what it has. Positions are documents too, in an index of their own, and are written
when all documents are; after a crash between the two some are read again and change nothing.

What is written is found after the index is refreshed, every second by default.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from elasticsearch import ApiError, AsyncElasticsearch, BadRequestError, TransportError

from services.search.domain import Document, Found, IndexAwayError, Place, Question

_TIMEOUT_SECONDS = 10
_RETRIES = 3
_CONFLICT = 409
_POSITIONS_MAX = 1000
_KEYWORD = {"type": "keyword"}
_LONG = {"type": "long"}
_ORDER_FIELDS = {
    "order_id": _KEYWORD,
    "ordered_at_ms": _LONG,
    "customer_id": _KEYWORD,
    "state": _KEYWORD,
    "words": {"type": "keyword", "doc_values": False},
    "summary": {"type": "object", "enabled": False},
}
_POSITION_FIELDS = {"partition": _LONG, "next_offset": _LONG}


class ElasticsearchIndex:
    """One index for the documents, one for the positions."""

    def __init__(self, url: str, name: str) -> None:
        self._orders = name
        self._positions = f"{name}-positions"
        self._client = AsyncElasticsearch(
            url, request_timeout=_TIMEOUT_SECONDS, max_retries=_RETRIES, retry_on_timeout=True
        )

    async def open(self) -> None:
        await self._create(self._orders, _ORDER_FIELDS)
        await self._create(self._positions, _POSITION_FIELDS)

    async def _create(self, name: str, fields: Mapping[str, Any]) -> None:
        try:
            await self._client.indices.create(
                index=name, mappings={"dynamic": "strict", "properties": fields}
            )
        except BadRequestError as error:
            if error.error != "resource_already_exists_exception":
                raise
        except (ApiError, TransportError) as error:
            raise IndexAwayError(str(error)) from error

    async def close(self) -> None:
        await self._client.close()

    async def positions(self) -> dict[int, int]:
        try:
            # What was written a moment ago counts, seen by a search or not.
            await self._client.indices.refresh(index=self._positions)
            found = await self._client.search(index=self._positions, size=_POSITIONS_MAX)
        except (ApiError, TransportError) as error:
            raise IndexAwayError(str(error)) from error
        sources = [hit["_source"] for hit in found["hits"]["hits"]]
        return {source["partition"]: source["next_offset"] for source in sources}

    async def put(self, documents: Sequence[Document], positions: Mapping[int, int]) -> None:
        operations: list[dict[str, Any]] = []
        for document in documents:
            operations += self._document_operation(document)
        await self._bulk(operations)
        operations = []
        for partition, next_offset in positions.items():
            operations += [
                _operation(self._positions, str(partition), next_offset),
                {"partition": partition, "next_offset": next_offset},
            ]
        await self._bulk(operations)

    def _document_operation(self, document: Document) -> list[dict[str, Any]]:
        order_id = document.place.order_id
        source = {
            "order_id": order_id,
            "ordered_at_ms": document.place.ordered_at_ms,
            "customer_id": document.customer_id,
            "state": document.state,
            "words": list(document.words),
            "summary": document.summary,
        }
        return [_operation(self._orders, order_id, document.version), source]

    async def _bulk(self, operations: Sequence[Mapping[str, Any]]) -> None:
        if not operations:
            return
        try:
            answer = await self._client.bulk(operations=operations)
        except (ApiError, TransportError) as error:
            raise IndexAwayError(str(error)) from error
        errors = list(_errors(answer["items"]))
        if errors:
            raise IndexAwayError(json.dumps(errors[0]))

    async def find(self, question: Question) -> list[Found]:
        filters: list[dict[str, Any]] = [
            {"term": {name: value}}
            for name, value in (
                ("customer_id", question.customer_id),
                ("state", question.state),
            )
            if value is not None
        ]
        filters += [{"prefix": {"words": word}} for word in question.words]
        try:
            found = await self._client.search(
                index=self._orders,
                query={"bool": {"filter": filters}},
                sort=[{"ordered_at_ms": "desc"}, {"order_id": "desc"}],
                search_after=None if question.behind is None else list(question.behind),
                size=question.limit + 1,
                source_includes=["ordered_at_ms", "order_id", "summary"],
                track_total_hits=False,
            )
        except (ApiError, TransportError) as error:
            raise IndexAwayError(str(error)) from error
        sources = [hit["_source"] for hit in found["hits"]["hits"]]
        return [
            Found(Place(source["ordered_at_ms"], source["order_id"]), source["summary"])
            for source in sources
        ]

    async def count(self) -> int:
        try:
            return int((await self._client.count(index=self._orders))["count"])
        except (ApiError, TransportError) as error:
            raise IndexAwayError(str(error)) from error


def _operation(index: str, document_id: str, version: int) -> dict[str, Any]:
    about = {"_index": index, "_id": document_id, "version": version, "version_type": "external"}
    return {"index": about}


def _errors(items: Iterable[Mapping[str, Any]]) -> Iterable[Any]:
    """Return what went wrong, but for documents that are there already in a newer version."""
    for item in items:
        result = item["index"]
        if "error" in result and result["status"] != _CONFLICT:
            yield result["error"]
