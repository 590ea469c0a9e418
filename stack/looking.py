"""`python -m stack.looking`: looks into any Kafka for `millstream.testing`.

Each line of standard input is a question in JSON; each gets a line on standard output:

    {"records": "orders", "partition": null, ...}   {"records": [...]}
    {"group": "fraud", ...}                         {"group": {...}}

or `{"error": text, "code": Kafka's name of the error}`. Every question names `bootstrap_servers`,
`registry_url` and `command_config` ("" for none). It ends when standard input ends.

Keys and values are decoded: by the schema whose id they begin with, if there is a registry; a JSON
object or array; other text as it is; everything else as hexadecimal digits.
"""

import asyncio
import json
import sys
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from broker.cli.admin_settings import admin_settings, read_properties
from broker.records.errors import CorruptBatch
from common.kafka.admin.client import AdminClient
from common.kafka.admin.group_offsets import committed_offsets
from common.kafka.admin.groups import GroupDescription, describe_consumer_groups
from common.kafka.admin.leaders import EARLIEST, LATEST, list_offsets
from common.kafka.admin.settings import NoWatch
from common.kafka.errors import ErrorCode, KafkaError
from common.process.json_text import NotJsonError, read_json
from stack.topic_reading import Row, read_topic

TIMEOUT_MS = 10_000
DEAD = "Dead"
"""The state of a group that does not exist, as Kafka has it."""
Decode = Callable[[bytes], Any]


def main() -> int:
    """Answer until standard input ends."""
    looking = Looking()
    for line in sys.stdin:
        print(json.dumps(looking.answer(json.loads(line))), flush=True)
    return 0


class Looking:
    """Owns the client of the cluster that was asked about last, and the schemas of a registry."""

    def __init__(self) -> None:
        self._client: AdminClient | None = None
        self._of = ("", "")
        self._schemas: Schemas | None = None
        self._registry_url = ""

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a question."""
        try:
            client = self._client_of(question["bootstrap_servers"], question["command_config"])
            if "group" in question:
                return {"group": group(client, question["group"])}
            decode = self._decoder(question["registry_url"])
            rows = read_topic(client, question["records"], question["partition"])
            return {"records": [shown(row, decode) for row in rows]}
        except KafkaError as error:
            return {"error": str(error), "code": error.code.name}
        except CorruptBatch as error:
            return {"error": f"damaged records: {error}", "code": ErrorCode.CORRUPT_MESSAGE.name}

    def _client_of(self, servers: str, command_config: str) -> AdminClient:
        if self._client is None or self._of != (servers, command_config):
            if self._client is not None:
                self._client.close()
                self._client = None
            properties = read_properties(command_config) if command_config else {}
            settings = admin_settings(servers, None, properties, default_timeout_ms=TIMEOUT_MS)
            self._client = AdminClient(replace(settings, watch=NoWatch()))
            self._of = (servers, command_config)
        return self._client

    def _decoder(self, registry_url: str) -> Decode:
        if not registry_url:
            return plain
        if self._schemas is None or registry_url != self._registry_url:
            if self._schemas is not None:
                self._schemas.close()
            self._schemas, self._registry_url = Schemas(registry_url), registry_url
        return self._schemas.decode


def shown(row: Row, decode: Decode) -> dict[str, Any]:
    """Return a record as JSON, with its bytes in base64."""
    is_control = row.transaction not in ("", "open", "committed", "aborted")
    read = (lambda data: None) if is_control else decode
    return {
        **row._asdict(),
        "key": None if row.key is None else read(row.key),
        "value": None if row.value is None else read(row.value),
        "raw_key": _base64(row.key),
        "raw_value": _base64(row.value),
        "headers": [(name, _base64(value)) for name, value in row.headers],
    }


def _base64(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()


def plain(data: bytes) -> Any:
    """Decode without a registry."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data.hex()
    if text[:1] in ("{", "["):
        try:
            return read_json(data)
        except NotJsonError:
            return text
    is_text = all(letter.isprintable() or letter in "\t\r\n" for letter in text)
    return text if is_text else data.hex()


class Schemas:
    """Decodes with the schemas of a registry."""

    def __init__(self, url: str) -> None:
        # It needs aiohttp, which takes a third of a second to load.
        from rest_proxy.schema_store import SchemaStore

        self._runner = asyncio.Runner()
        self._store = SchemaStore(url, lambda: self._runner.get_loop().time())

    def decode(self, data: bytes) -> Any:
        """Decode the bytes behind a schema's id, and everything else without the registry."""
        from rest_proxy.formats import FormatError
        from rest_proxy.formats.wire import unframed
        from rest_proxy.refusals import RestError

        try:
            schema_id, body = unframed(data)
            return self._runner.run(self._store.with_id(schema_id)).codec.decode(body)
        except (FormatError, RestError):
            return plain(data)

    def close(self) -> None:
        """Close the connections to the registry."""
        self._runner.run(self._store.close())
        self._runner.close()


def group(client: AdminClient, group_id: str) -> dict[str, Any]:
    """Return a group of consumers: its members, offsets and lags; raises KafkaError."""
    described = describe_consumer_groups(client, [group_id])[group_id]
    if isinstance(described, KafkaError):
        if described.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise described
        return {"group_id": group_id, "state": DEAD, "type": "", "members": [], "offsets": []}
    return {
        "group_id": group_id,
        "state": described.state,
        "type": described.group_type,
        "members": [
            {
                "member_id": member.member_id,
                "instance_id": member.group_instance_id,
                "client_id": member.client_id,
                "host": member.host,
                "partitions": sorted(member.assignment),
            }
            for member in described.members
        ],
        "offsets": _offsets(client, described),
    }


def _offsets(client: AdminClient, described: GroupDescription) -> list[dict[str, Any]]:
    committed = committed_offsets(client, described.group_id)
    assigned = {one for each in described.members for one in each.assignment}
    partitions = sorted(committed.keys() | assigned)
    ends = list_offsets(client, partitions, LATEST)
    begins = list_offsets(client, partitions, EARLIEST)
    told = []
    for partition in partitions:
        end, begin = ends[partition], begins[partition]
        if isinstance(end, KafkaError) or isinstance(begin, KafkaError):
            continue  # The topic is deleted.
        offset = committed[partition].offset if partition in committed else None
        # What nobody has committed yet is all to be read.
        behind = end.offset - (begin.offset if offset is None else max(offset, begin.offset))
        told.append(
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "offset": offset,
                "end_offset": end.offset,
                "lag": max(0, behind),
            }
        )
    return told


if __name__ == "__main__":
    sys.exit(main())
