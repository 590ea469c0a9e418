"""Endpoints that are served, by the lists of Confluent's proxy."""

import pytest

from millstream.testing import LocalRestProxy, LocalStack
from rest_proxy.app import V2, V3
from rest_proxy.endpoints import ENDPOINTS, KNOWN, EndpointLists
from rest_proxy.refusals import RestError
from rest_proxy.settings import Settings, SettingsError
from tests.lib.rest_calls import RestCalls, records_type

RECORDS = {"records": [{"value": 1}]}


def test_every_call_has_a_name() -> None:
    calls = {(route.method, route.path) for each in (*V2, *V3) for route in each.ROUTES}
    assert calls == ENDPOINTS.keys() - {("GET", "/"), ("POST", "/")}


@pytest.mark.parametrize(
    "name",
    [
        "api.v2.consumers.consume-json-schema",
        "api.v3.partition-offsets.*",
        "api.v3.acls.batch-create",
    ],
)
def test_names_are_those_of_confluent(name: str) -> None:
    assert name in KNOWN


@pytest.mark.parametrize(
    ("allowed", "blocked", "served"),
    [
        ([], [], True),
        (["api.v3.topics.*"], [], True),
        (["api.v3.topics.list"], [], True),
        (["api.v3.topics.get"], [], False),
        ([], ["api.v3.topics.*"], False),
        (["api.v3.topics.*"], ["api.v3.topics.list"], False),
        (["api.v3.topics.list"], ["api.v3.topics.get"], True),
    ],
)
def test_lists(allowed: list[str], blocked: list[str], served: bool) -> None:
    lists = EndpointLists(allowed, blocked)
    if served:
        lists.check("GET", "/v3/clusters/{cluster}/topics", {})
        return
    with pytest.raises(RestError) as refused:
        lists.check("GET", "/v3/clusters/{cluster}/topics", {})
    assert refused.value.status == 404


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"api\.v3\.topic is no endpoint"):
        Settings.of({"api.endpoints.blocklist": "api.v3.topics.list, api.v3.topic"})


@pytest.mark.slow
def test_calls_that_are_not_served(stack: LocalStack, topic: str) -> None:
    settings = {
        "api.endpoints.allowlist": "api.v2.topics.*,"
        "api.v2.produce-to-topic.json, api.v3.clusters.list",
        "api.endpoints.blocklist": "api.v2.topics.get",
    }
    with LocalRestProxy(stack.bootstrap_servers, settings=settings) as proxy:
        rest = RestCalls(proxy.url)
        json, avro = records_type("json"), records_type("avro")
        assert rest.post(f"/topics/{topic}", RECORDS, json).status == 200
        assert rest.post(f"/topics/{topic}/", RECORDS, avro).code == 405
        assert topic in rest.get("/topics").body
        assert rest.get(f"/topics/{topic}").code == 404
        assert rest.get("/v3/clusters/").status == 200
        assert rest.get("/v3/clusters/x").code == 404
        assert rest.post("/consumers/g").code == 405
        assert rest.get("/health/ready").status == 200
