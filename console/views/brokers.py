"""The cluster: brokers with what they lead and store, the metadata quorum, open transactions."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from aiohttp import web

from common.kafka.admin import cluster as clusters
from common.kafka.admin import configs, log_directories, topics, transactions
from common.kafka.admin.client import AdminClient
from common.kafka.admin.configs import Resource, ResourceType
from common.kafka.admin.transactions import TransactionListing
from common.kafka.errors import ErrorCode, KafkaError
from console.answers import Fields, json_answer
from console.console import CONSOLE
from console.views.topics import settings_of

_MAX_TRANSACTIONS: Final = 500


async def get_overview(request: web.Request) -> web.Response:
    """Return what the page shows on every view: the cluster, and what this console may do."""
    console = request.app[CONSOLE]
    settings = console.settings
    described = await console.cluster.fresh(clusters.describe_cluster)
    return json_answer(
        {
            "cluster_id": described.cluster_id,
            "controller": described.controller_id,
            "brokers": len(described.brokers),
            "bootstrap_servers": settings.kafka.bootstrap_servers,
            "is_read_only": settings.is_read_only,
            "has_masks": bool(settings.masks),
            "has_registry": bool(settings.schema_registry),
            "connect": len(settings.connect),
            "has_stack": bool(settings.stack),
        }
    )


async def get_brokers(request: web.Request) -> web.Response:
    """Return the brokers with the number of partitions that each leads and follows."""
    cluster = request.app[CONSOLE].cluster
    described = await cluster.fresh(clusters.describe_cluster)
    found = await cluster.fresh(topics.list_topics)
    leads: Counter[int] = Counter()
    has: Counter[int] = Counter()
    lags: Counter[int] = Counter()
    offline = 0
    for topic in found:
        for each in topic.partitions:
            leads[each.leader_id] += 1
            has.update(each.replicas)
            lags.update(set(each.replicas) - set(each.isr))
            offline += each.leader_id < 0
    there = {each.broker_id: each for each in described.brokers}
    return json_answer(
        {
            "controller": described.controller_id,
            "offline_partitions": offline,
            "brokers": [
                {
                    "id": number,
                    "host": there[number].host if number in there else None,
                    "port": there[number].port if number in there else None,
                    "rack": there[number].rack if number in there else None,
                    "is_there": number in there,
                    "leads": leads[number],
                    "replicas": has[number],
                    "out_of_sync": lags[number],
                }
                for number in sorted({*there, *has})
            ],
        }
    )


async def get_broker(request: web.Request) -> web.Response:
    """Return the settings and the log directories of one broker."""
    number = Fields(request.match_info).whole("broker", most=(1 << 31) - 1)
    return json_answer(await request.app[CONSOLE].cluster.admin.run(_broker, number))


def _broker(client: AdminClient, number: int) -> dict[str, Any]:
    client.require_node(number)
    entries = configs.describe(
        client, Resource(ResourceType.BROKER, str(number)), with_synonyms=False
    )
    directories = [
        {
            "path": each.log_dir,
            "error": ErrorCode(each.error_code).name if each.error_code else "",
            "replicas": sum(len(topic.partitions) for topic in each.topics),
            "bytes": str(
                sum(part.partition_size for topic in each.topics for part in topic.partitions)
            ),
            "usable_bytes": str(each.usable_bytes),
            "total_bytes": str(each.total_bytes),
        }
        for each in log_directories.log_directories(client, number)
    ]
    return {"id": number, "directories": directories, "settings": settings_of(entries)}


async def get_quorum(request: web.Request) -> web.Response:
    """Return the metadata quorum as its leader sees it."""
    quorum = await request.app[CONSOLE].cluster.fresh(clusters.describe_metadata_quorum)

    def shown(state: Any, role: str) -> dict[str, Any]:
        return {
            "id": state.replica_id,
            "role": "leader" if state.replica_id == quorum.leader_id else role,
            "end": str(state.log_end_offset),
            "behind": str(max(0, end - state.log_end_offset)),
            "caught_up_ms": str(state.last_caught_up_timestamp),
        }

    states = [*quorum.voters, *quorum.observers]
    end = max((each.log_end_offset for each in states), default=0)
    return json_answer(
        {
            "leader": quorum.leader_id,
            "epoch": quorum.leader_epoch,
            "high_watermark": str(quorum.high_watermark),
            "nodes": [
                *(shown(each, "voter") for each in quorum.voters),
                *(shown(each, "observer") for each in quorum.observers),
            ],
        }
    )


async def get_transactions(request: web.Request) -> web.Response:
    """Return the transactions of all coordinators, the open ones first."""
    return json_answer(await request.app[CONSOLE].cluster.admin.run(_transactions))


def _transactions(client: AdminClient) -> dict[str, Any]:
    listed = transactions.list_transactions(client)
    ongoing = [each for each in listed if each.state == "Ongoing"][:_MAX_TRANSACTIONS]
    described = transactions.describe_transactions(
        client, [each.transactional_id for each in ongoing]
    )
    return {"count": len(listed), "open": [_open(each, described) for each in ongoing]}


def _open(listing: TransactionListing, described: Mapping[str, Any]) -> dict[str, Any]:
    outcome = described[listing.transactional_id]
    known = None if isinstance(outcome, KafkaError) else outcome
    started_ms = known.start_time_ms if known else None
    return {
        "id": listing.transactional_id,
        "producer_id": str(listing.producer_id),
        "state": listing.state,
        "coordinator": listing.coordinator_id,
        "started_ms": None if started_ms is None else str(started_ms),
        "partitions": list(map(str, known.partitions)) if known else [],
    }


ROUTES: Final = (
    web.get("/api/overview", get_overview),
    web.get("/api/brokers", get_brokers),
    web.get("/api/brokers/{broker}", get_broker),
    web.get("/api/quorum", get_quorum),
    web.get("/api/transactions", get_transactions),
)
