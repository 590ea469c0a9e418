"""The document about the control, OpenAPI 3.1, made from its routes."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from broker.server.testing.routes import JSON, Route
from common.http.problem_document import PROBLEM_TYPE


class About(NamedTuple):
    """What has the control."""

    title: str
    text: str


BROKER: Final = About(
    "Millstream broker under test",
    "Faults on demand for the tests of Kafka clients. A broker has this control only if it was "
    "started with --testing.",
)


def open_api(routes: Sequence[Route], about: About) -> dict[str, Any]:
    """Return the document."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": about.title, "version": "1", "description": about.text},
        "paths": paths,
    }


def _operation(route: Route) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "query", "description": what, "schema": {"type": "string"}}
        for name, what in route.parameters.items()
    ]
    if "{id}" in route.path:
        parameters.append(
            {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
        )
    operation: dict[str, Any] = {
        "summary": route.what,
        "responses": {
            str(int(route.status)): {"description": "Done", "content": {JSON: {}}},
            "default": {"description": "Why not (RFC 9457)", "content": {PROBLEM_TYPE: {}}},
        },
    }
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": route.body}}}
    return operation
