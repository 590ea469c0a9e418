"""`/v3/clusters`: the cluster, its brokers and their replicas."""

from aiohttp import web

from rest_proxy.proxy import PROXY
from rest_proxy.refusals import RestError, not_found
from rest_proxy.v3 import shapes
from rest_proxy.v3.shapes import Place
from rest_proxy.web.answers import answer

CLUSTER = "/v3/clusters/{cluster}"


async def place_of(request: web.Request) -> Place:
    """Return the address of the path's cluster; raises RestError, 404, for another one."""
    proxy, cluster_id = request.app[PROXY], request.match_info["cluster"]
    await proxy.check_cluster(cluster_id)
    return Place(proxy.base_url(request), cluster_id)


def number_of(request: web.Request, name: str) -> int:
    """Return a number of the path; raises RestError, 404."""
    text = request.match_info[name]
    if not (text.isascii() and text.isdigit() and int(text) < 1 << 31):
        raise not_found()
    return int(text)


def broker_not_found(broker_id: int) -> RestError:
    return not_found(f"Broker {broker_id} cannot be found.")


async def get_clusters(request: web.Request) -> web.Response:
    proxy = request.app[PROXY]
    found = await proxy.brokers.cluster()
    place = Place(proxy.base_url(request), found.cluster_id)
    listing = place.listing("KafkaCluster", (), [shapes.cluster(place, found)])
    listing["metadata"]["self"] = f"{place.base}/v3/clusters"
    return answer(listing)


async def get_cluster(request: web.Request) -> web.Response:
    place = await place_of(request)
    return answer(shapes.cluster(place, await request.app[PROXY].brokers.cluster()))


async def get_brokers(request: web.Request) -> web.Response:
    place = await place_of(request)
    found = await request.app[PROXY].brokers.cluster()
    data = [shapes.broker(place, each) for each in found.brokers]
    return answer(place.listing("KafkaBroker", ("brokers",), data))


async def get_broker(request: web.Request) -> web.Response:
    place, broker_id = await place_of(request), number_of(request, "broker")
    for each in (await request.app[PROXY].brokers.cluster()).brokers:
        if each.broker_id == broker_id:
            return answer(shapes.broker(place, each))
    raise broker_not_found(broker_id)


async def get_broker_replicas(request: web.Request) -> web.Response:
    """Answer every replica of a broker."""
    place, broker_id = await place_of(request), number_of(request, "broker")
    brokers = request.app[PROXY].brokers
    if broker_id not in [each.broker_id for each in (await brokers.cluster()).brokers]:
        raise broker_not_found(broker_id)
    data = [
        shapes.replica(place, topic.name, partition, broker_id)
        for topic in await brokers.topics()
        for partition in topic.partitions
        if broker_id in partition.replicas
    ]
    parts = ("brokers", broker_id, "partition-replicas")
    return answer(place.listing("KafkaReplica", parts, data))


ROUTES = [
    web.get("/v3/clusters", get_clusters),
    web.get(CLUSTER, get_cluster),
    web.get(f"{CLUSTER}/brokers", get_brokers),
    web.get(f"{CLUSTER}/brokers/{{broker}}", get_broker),
    web.get(f"{CLUSTER}/brokers/{{broker}}/partition-replicas", get_broker_replicas),
]
