"""`python -m stack.seeding PLAN`: create the topics, schemas and records in a plan's seeds.

It is safe to repeat: an existing topic keeps its partitions and gets its settings, a registered
schema is not changed, and records are written only to an empty topic.
"""

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp

from common.credentials.access import read_client_file
from common.process.starting import configure_logging
from rest_proxy.kafka.metadata import LATEST, SET, TOPIC_RESOURCE
from rest_proxy.proxy import Proxy
from rest_proxy.refusals import TOPIC_NOT_FOUND, RestError
from rest_proxy.settings import Settings
from rest_proxy.v3.record_bodies import encoded
from stack.plan import Plan, bootstrap_servers, security_folder, url_of
from stack.ports import REGISTRY
from stack.security import client_file


async def seed(plan: Plan) -> None:
    """Create all seeds; raise RestError, aiohttp.ClientError."""
    registry_url = url_of(plan, REGISTRY)
    settings = {"bootstrap.servers": bootstrap_servers(plan), "schema.registry.url": registry_url}
    folder = security_folder(plan)
    if folder is not None:
        client = read_client_file(client_file(folder))
        settings |= {f"client.{name}": value for name, value in client.items()}
    proxy = Proxy.of(Settings.of(settings))
    try:
        await proxy.brokers.connect()
        topics = plan["seeds"].get("topics", [])
        for topic in topics:
            with _naming(f"topic {topic['name']}"):
                await _make_topic(proxy, topic)
        await _register(registry_url, plan["seeds"].get("schemas", []))
        for topic in topics:
            with _naming(f"records of topic {topic['name']}"):
                await _send_records(proxy, topic)
    finally:
        await proxy.close()


@contextmanager
def _naming(what: str) -> Iterator[None]:
    """Say what could not be created."""
    try:
        yield
    except RestError as error:
        raise RestError(error.error_code, f"{what}: {error}") from error


async def _make_topic(proxy: Proxy, topic: Mapping[str, Any]) -> None:
    name = topic["name"]
    try:
        await proxy.brokers.topic(name)
    except RestError as error:
        if error.error_code != TOPIC_NOT_FOUND:
            raise
        await proxy.admin.create_topic(
            name,
            partitions=topic["partitions"],
            replication=topic["replicas"],
            assignment=None,
            configs=topic["config"],
            validate_only=False,
        )
        return
    changes = [(key, SET, value) for key, value in topic["config"].items()]
    if changes:
        await proxy.brokers.alter_configs(TOPIC_RESOURCE, name, changes)


async def _register(url: str, schemas: list[Mapping[str, Any]]) -> None:
    if not schemas:
        return
    if not url:
        raise RestError(400, "schemas need a registry: add it to --only")
    async with aiohttp.ClientSession() as session:
        for schema in schemas:
            body = {"schema": schema["schema"], "schemaType": schema["type"]}
            path = f"{url}/subjects/{schema['subject']}/versions"
            async with session.post(path, json=body) as response:
                if response.status >= 400:
                    raise RestError(400, f"{schema['subject']}: {await response.text()}")


async def _send_records(proxy: Proxy, topic: Mapping[str, Any]) -> None:
    name, records = topic["name"], topic["records"]
    if not records or not await _is_empty(proxy, name):
        return
    sent = []
    for number, record in enumerate(records):
        try:
            made = await encoded(proxy, name, record)
        except RestError as error:
            raise RestError(400, f"record {number}: {error}") from None
        sent.append(proxy.sender.send(name, made.record))
    await asyncio.gather(*sent)


async def _is_empty(proxy: Proxy, name: str) -> bool:
    topic = await proxy.brokers.topic(name)
    places = [(name, each.partition_id) for each in topic.partitions]
    ends = await proxy.brokers.offsets(places, LATEST)
    return not any(ends.values())


def main() -> int:
    """Run the program; return 1 if a seed cannot be created."""
    configure_logging()
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        asyncio.run(seed(plan))
    except (RestError, aiohttp.ClientError, OSError) as error:
        sys.stderr.write(f"seeding failed: {error}\n")
        return 1
    sys.stdout.write("millstream seeding ready on this stack\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
