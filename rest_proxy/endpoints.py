"""The names of endpoints, by which `api.endpoints.allowlist` and `.blocklist` serve or refuse them.

They are those of Confluent's proxy: each endpoint has a name and belongs to a group, whose name
ends in `.*`. With an allowlist only what it names is served; what the blocklist names is not. A
call that is not served is answered 404 if it is a GET, otherwise 405. Pure.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from rest_proxy.refusals import RestError, not_found

_FORMATS: Final = {
    "binary": "binary",
    "json": "json",
    "avro": "avro",
    "jsonschema": "json-schema",
    "protobuf": "protobuf",
}
_FORMAT: Final = "{format}"
_V2: Final = """
GET / root.get
POST / root.post
GET /topics topics.list
GET /topics/{topic} topics.get
GET /topics/{topic}/partitions partitions.list
GET /topics/{topic}/partitions/{partition} partitions.get
GET /topics/{topic}/partitions/{partition}/offsets partitions.get-offsets
GET /brokers brokers.list
POST /topics/{topic} produce-to-topic.{format}
POST /topics/{topic}/partitions/{partition} produce-to-partition.{format}
POST /consumers/{group} consumers.create
DELETE /consumers/{group}/instances/{instance} consumers.delete
POST /consumers/{group}/instances/{instance}/subscription consumers.subscribe
GET /consumers/{group}/instances/{instance}/subscription consumers.get-subscription
DELETE /consumers/{group}/instances/{instance}/subscription consumers.unsubscribe
GET /consumers/{group}/instances/{instance}/records consumers.consume-{format}
POST /consumers/{group}/instances/{instance}/offsets consumers.commit-offsets
GET /consumers/{group}/instances/{instance}/offsets consumers.get-committed-offsets
POST /consumers/{group}/instances/{instance}/positions/beginning consumers.seek-to-beginning
POST /consumers/{group}/instances/{instance}/positions/end consumers.seek-to-end
POST /consumers/{group}/instances/{instance}/positions consumers.seek-to-offset
POST /consumers/{group}/instances/{instance}/assignments consumers.assign
GET /consumers/{group}/instances/{instance}/assignments consumers.get-assignments
"""
_V3: Final = """
GET clusters.list
GET /{cluster} clusters.get
GET /{cluster}/acls acls.list
POST /{cluster}/acls acls.create
DELETE /{cluster}/acls acls.delete
POST /{cluster}/acls:batch acls.batch-create
GET /{cluster}/brokers brokers.list
GET /{cluster}/brokers/{broker} brokers.get
GET /{cluster}/brokers/{broker}/partition-replicas replicas.search-by-broker
GET /{cluster}/broker-configs cluster-configs.list
GET /{cluster}/broker-configs/{name} cluster-configs.get
PUT /{cluster}/broker-configs/{name} cluster-configs.update
DELETE /{cluster}/broker-configs/{name} cluster-configs.delete
POST /{cluster}/broker-configs:alter cluster-configs.alter
GET /{cluster}/brokers/-/configs brokers-configs.list
GET /{cluster}/brokers/{broker}/configs broker-configs.list
GET /{cluster}/brokers/{broker}/configs/{name} broker-configs.get
PUT /{cluster}/brokers/{broker}/configs/{name} broker-configs.update
DELETE /{cluster}/brokers/{broker}/configs/{name} broker-configs.delete
POST /{cluster}/brokers/{broker}/configs:alter broker-configs.alter
GET /{cluster}/topics/-/configs topic-configs.list
GET /{cluster}/topics/{topic}/configs topic-configs.list
GET /{cluster}/topics/{topic}/configs/{name} topic-configs.get
PUT /{cluster}/topics/{topic}/configs/{name} topic-configs.update
DELETE /{cluster}/topics/{topic}/configs/{name} topic-configs.delete
POST /{cluster}/topics/{topic}/configs:alter topic-configs.alter
GET /{cluster}/topics topics.list
POST /{cluster}/topics topics.create
GET /{cluster}/topics/{topic} topics.get
PATCH /{cluster}/topics/{topic} topics.partitions
DELETE /{cluster}/topics/{topic} topics.delete
GET /{cluster}/topics/{topic}/partitions partitions.list
GET /{cluster}/topics/{topic}/partitions/{partition} partitions.get
GET /{cluster}/topics/{topic}/partitions/{partition}/offset partitions.list.offsets
GET /{cluster}/topics/{topic}/partitions/{partition}/replicas replicas.list
GET /{cluster}/topics/{topic}/partitions/{partition}/replicas/{broker} replicas.get
GET /{cluster}/topics/-/partitions/-/reassignment partition-reassignments.list
GET /{cluster}/topics/{topic}/partitions/-/reassignment partition-reassignments.search-by-topic
GET /{cluster}/topics/{topic}/partitions/{partition}/reassignment partition-reassignments.get
GET /{cluster}/consumer-groups consumer-groups.list
GET /{cluster}/consumer-groups/{group} consumer-groups.get
DELETE /{cluster}/consumer-groups/{group} consumer-groups.delete
PATCH /{cluster}/consumer-groups/{group}/offsets consumer-groups.reset-offsets
GET /{cluster}/consumer-groups/{group}/consumers consumers.list
GET /{cluster}/consumer-groups/{group}/consumers/{consumer} consumers.get
GET /{cluster}/consumer-groups/{group}/consumers/{consumer}/assignments consumer-assignments.list
GET /{cluster}/consumer-groups/{group}/consumers/{consumer}/assignments/{topic}/partitions/{partition} consumer-assignments.get
GET /{cluster}/consumer-groups/{group}/lag-summary consumer-group-lag-summary.get
GET /{cluster}/consumer-groups/{group}/lags consumer-lags.list
GET /{cluster}/consumer-groups/{group}/lags/{topic}/partitions/{partition} consumer-lags.get
POST /{cluster}/topics/{topic}/records produce.produce-to-topic
POST /{cluster}/topics/{topic}/records:batch batch-produce.produce-to-topic
"""  # noqa: E501 - a path is one word
_GROUPS: Final = {"api.v3.partitions.list.offsets": "api.v3.partition-offsets.*"}
"""The groups of names that say another one."""


def _table() -> dict[tuple[str, str], str]:
    found = {}
    for version, prefix, lines in (("v2", "", _V2), ("v3", "/v3/clusters", _V3)):
        for line in lines.strip().splitlines():
            method, *path, name = line.split()
            found[method, prefix + "".join(path)] = f"api.{version}.{name}"
    return found


ENDPOINTS: Final = _table()
"""The name of each call, by its method and path. `{format}` in it is the format of the records."""


def group_of(name: str) -> str:
    return _GROUPS.get(name) or name.rpartition(".")[0] + ".*"


def _known() -> frozenset[str]:
    names = set(ENDPOINTS.values())
    with_formats = {each.replace(_FORMAT, one) for each in names for one in _FORMATS.values()}
    return frozenset(with_formats | {group_of(each) for each in names})


KNOWN: Final = _known()


class EndpointLists:
    """What is served. Raises ValueError for a name that no endpoint and no group has."""

    def __init__(self, allowed: Iterable[str], blocked: Iterable[str]) -> None:
        self._allowed, self._blocked = frozenset(allowed), frozenset(blocked)
        for each in sorted(self._allowed | self._blocked):
            if each not in KNOWN:
                raise ValueError(
                    f"{each} is no endpoint, as api.v3.topics.list and api.v3.acls.* are"
                )

    def check(self, method: str, path: str, formats: Mapping[str, str]) -> None:
        """Raise RestError, 404 or 405, for a call that is not served.

        `formats` has the format of its records, if it has any, by method.
        """
        name = ENDPOINTS.get((method, path))
        if name is None:
            return
        whole = name.replace(_FORMAT, _FORMATS.get(formats.get(method, ""), "binary"))
        names = {whole, group_of(name)}
        if names & self._blocked or (self._allowed and not names & self._allowed):
            raise not_found() if method == "GET" else RestError(405, "HTTP 405 Method Not Allowed")
