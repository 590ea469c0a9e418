"""`/config`, `/mode`, `/contexts`, the server's version and its health."""

from importlib.metadata import PackageNotFoundError, version

from aiohttp import web

from schemas.registry import changes, refusals
from schemas.registry.rest.answers import (
    TOPIC_KEY,
    WRITES_KEY,
    answer,
    flag,
    page,
    path_context,
    read_object,
    registry_of,
    scope_of,
    settable_scope_of,
)
from schemas.registry.topic import Decide


async def _write(request: web.Request, decide: Decide) -> web.Response:
    return answer(request, await request.app[WRITES_KEY].write(request, decide))


async def get_config(request: web.Request) -> web.Response:
    registry, scope = registry_of(request), scope_of(request)
    in_scope = flag(request, "defaultToGlobal")
    found = registry.config_in_scope(scope) if in_scope else registry.config(scope)
    if found is None:
        raise refusals.no_subject_config(scope or "")
    return answer(request, found)


async def put_config(request: web.Request) -> web.Response:
    scope, body = settable_scope_of(request), await read_object(request)
    return await _write(request, lambda registry: changes.put_config(registry, scope, body))


async def delete_config(request: web.Request) -> web.Response:
    scope = scope_of(request)
    return await _write(request, lambda registry: changes.delete_config(registry, scope))


async def get_mode(request: web.Request) -> web.Response:
    registry, scope = registry_of(request), scope_of(request)
    in_scope = flag(request, "defaultToGlobal")
    found = registry.mode_in_scope(scope) if in_scope else registry.mode(scope)
    if found is None:
        raise refusals.no_subject_mode(scope or "")
    return answer(request, {"mode": found})


async def put_mode(request: web.Request) -> web.Response:
    scope, body = settable_scope_of(request), await read_object(request)
    is_forced = flag(request, "force")
    return await _write(
        request, lambda registry: changes.put_mode(registry, scope, body, is_forced=is_forced)
    )


async def delete_mode(request: web.Request) -> web.Response:
    scope = scope_of(request)
    return await _write(request, lambda registry: changes.delete_mode(registry, scope))


async def get_contexts(request: web.Request) -> web.Response:
    prefix = request.query.get("contextPrefix", "")
    names = [name for name in registry_of(request).contexts() if name.startswith(prefix)]
    return answer(request, page(request, names))


async def delete_context(request: web.Request) -> web.Response:
    context = path_context(request)
    await request.app[WRITES_KEY].write(
        request, lambda registry: changes.delete_context(registry, context)
    )
    return web.Response(status=204)


async def get_cluster(request: web.Request) -> web.Response:
    """Answer with the ids of the Kafka cluster and of the registry's group."""
    clusters = {
        "kafka-cluster": request.app[TOPIC_KEY].cluster_id,
        "schema-registry-cluster": request.app[WRITES_KEY].leadership.group_id,
    }
    return answer(request, {"scope": {"path": [], "clusters": clusters}, "id": ""})


async def get_version(request: web.Request) -> web.Response:
    try:
        number = version("millstream")
    except PackageNotFoundError:
        number = "unknown"
    return answer(request, {"version": number, "commitId": "unknown"})


async def get_root(request: web.Request) -> web.Response:
    return answer(request, {})


async def get_live(request: web.Request) -> web.Response:
    return answer(request, {"status": "live"})


async def get_ready(request: web.Request) -> web.Response:
    """Answer ready if the topic is read to its end and the leader is known."""
    leader = request.app[WRITES_KEY].leadership.leader
    is_ready = request.app[TOPIC_KEY].is_loaded and leader is not None
    body = {
        "status": "ready" if is_ready else "starting",
        "leader": None if leader is None else leader.url,
    }
    return answer(request, body, 200 if is_ready else 503)


ROUTES = [
    ("GET", "/config", get_config),
    ("PUT", "/config", put_config),
    ("DELETE", "/config", delete_config),
    ("GET", "/config/{subject:[^/]+}", get_config),
    ("PUT", "/config/{subject:[^/]+}", put_config),
    ("DELETE", "/config/{subject:[^/]+}", delete_config),
    ("GET", "/mode", get_mode),
    ("PUT", "/mode", put_mode),
    ("DELETE", "/mode", delete_mode),
    ("GET", "/mode/{subject:[^/]+}", get_mode),
    ("PUT", "/mode/{subject:[^/]+}", put_mode),
    ("DELETE", "/mode/{subject:[^/]+}", delete_mode),
]

SERVER_ROUTES = [
    ("GET", "/contexts", get_contexts),
    ("DELETE", "/contexts/{context:[^/]+}", delete_context),
    ("GET", "/v1/metadata/id", get_cluster),
    ("GET", "/v1/metadata/version", get_version),
    ("POST", "/", get_root),
    ("GET", "/health/live", get_live),
    ("GET", "/health/ready", get_ready),
]
"""Routes that belong to no context."""
