"""Valid requests of every API and version, made from the message tables.

A field is filled by its name with the value of a typical client of the node under test: its topic,
its group, a batch of records. Mutations start with these requests, so they have to reach the code
behind the validation.
"""

from collections.abc import Iterator
from enum import Enum
from random import Random
from typing import Any, NamedTuple

from broker.records.build import build_batch
from broker.server.apis import SERVED_APIS as BROKER_APIS
from broker.server.quorum.controller.controller_dispatch import SERVED_APIS as CONTROLLER_APIS
from common.kafka.protocol.api_keys import API_VERSION_RANGES, ApiKey
from common.kafka.protocol.framing import encode_request, request_class
from common.kafka.protocol.layout import is_nullable, layout_of
from common.kafka.protocol.message import Field, Message, Struct
from common.kafka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from common.kafka.protocol.messages.sasl_handshake import SaslHandshakeRequest

BROKER, CONTROLLER, LOGGED_IN = "broker", "controller", "logged in"
TOKENS: dict[str, bytes] = {
    "PLAIN": b"\0alice\0alice-secret",
    "SCRAM-SHA-256": b"n,,n=alice,r=nonce",
    "SCRAM-SHA-512": b"n,a=alice,n=alice,r=nonce,tokenauth=true",
    # Not signed, about alice, for a very long time.
    "OAUTHBEARER": b"n,,\x01auth=Bearer eyJhbGciOiJub25lIn0."
    b"eyJzdWIiOiJhbGljZSIsImlhdCI6MSwiZXhwIjo5OTk5OTk5OTk5fQ.\x01\x01",
}
"""The first token of each mechanism. A mechanism is a target of its own, of one SASL listener."""
APIS: dict[str, list[ApiKey]] = {
    BROKER: sorted(BROKER_APIS),
    CONTROLLER: sorted(CONTROLLER_APIS),
    LOGGED_IN: sorted(BROKER_APIS - {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}),
    **{
        each: [ApiKey.SASL_HANDSHAKE, ApiKey.API_VERSIONS, ApiKey.SASL_AUTHENTICATE]
        for each in TOKENS
    },
}
CLIENT_ID = "fuzz"
GROUP = "fuzz-group"
TRANSACTIONAL_ID = "fuzz-copier"
TOPIC = "fuzz-topic"
OTHER_BROKER = 77
"""An unused node id: some requests in the name of the node itself stop it, as they should."""


class Optional(Enum):
    """What stands in the optional parts of a request: what may be null, and lists."""

    TYPICAL = "as a typical client has it"
    FILLED = "one of everything"
    EMPTY = "nothing"


class World(NamedTuple):
    """The objects of the node under test that requests name."""

    cluster_id: str
    topic_id: bytes
    log_dir: str
    optional: Optional = Optional.TYPICAL

    @property
    def is_filled(self) -> bool:
        """Whether nothing optional is left out."""
        return self.optional is Optional.FILLED


class Recorded(NamedTuple):
    """One valid request, and its listener."""

    listener: str
    api_key: ApiKey
    version: int
    message: Message

    def frame(self, correlation_id: int = 1) -> bytes:
        """Encode the request without its size."""
        return encode_request(self.api_key, self.version, correlation_id, CLIENT_ID, self.message)[
            4:
        ]


BATCH = build_batch([(b"key", b"value", (("header", b"x"),), 1_700_000_000_000)])
ZERO_ID = bytes(16)

STRINGS: dict[str, str | None] = {
    "name": TOPIC,
    "topic": TOPIC,
    "topic_name": TOPIC,
    "group_id": GROUP,
    "group": GROUP,
    "groups_names": GROUP,
    "key": GROUP,
    "coordinator_keys": GROUP,
    "member_id": "",
    "transactional_id": TRANSACTIONAL_ID,
    "v3_and_below_transactional_id": TRANSACTIONAL_ID,
    "transactional_ids": TRANSACTIONAL_ID,
    "group_instance_id": None,
    "protocol_type": "consumer",
    "protocol_name": "range",
    "client_software_name": "fuzz",
    "client_software_version": "1",
    "resource_name": TOPIC,
    "entity_type": "client-id",
    "entity_name": "somebody",
    "host": "127.0.0.1",
    "rack_id": "",
    "principal_type": "User",
    "principal_name": "alice",
    "owner_principal_type": "User",
    "owner_principal_name": "alice",
    "cursor": None,
}
NUMBERS: dict[str, int | float] = {
    "acks": 1,
    "timeout_ms": 1_000,
    "max_wait_ms": 10,
    "min_bytes": 1,
    "max_bytes": 1 << 20,
    "partition_max_bytes": 1 << 20,
    "session_epoch": -1,
    "replica_id": -1,
    "current_leader_epoch": -1,
    "last_fetched_epoch": -1,
    "committed_leader_epoch": -1,
    "committed_offset": 5,
    "generation_id": -1,
    "generation_id_or_member_epoch": -1,
    "member_epoch": -1,
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 10_000,
    "transaction_timeout_ms": 10_000,
    "producer_id": -1,
    "producer_epoch": -1,
    "timestamp": -1,
    "num_partitions": 1,
    "replication_factor": 1,
    "count": 2,
    "resource_type": 2,
    "broker_id": OTHER_BROKER,
    "broker_ids": 1,
    "node_id": OTHER_BROKER,
    "leader_id": 1,
    "voter_id": -1,
    "endpoint_type": 1,
    "response_partition_limit": 10,
    "match_type": 0,
    "value": 1_000_000.0,
    "port": 9_092,
    "pattern_type": 3,
    "pattern_type_filter": 3,
    "permission_type": 3,
    "operation": 3,
}
PER_API: dict[tuple[ApiKey, str], Any] = {
    (ApiKey.CREATE_TOPICS, "name"): "fuzz-new",
    (ApiKey.DELETE_TOPICS, "name"): "fuzz-new",
    (ApiKey.DELETE_TOPICS, "topic_names"): "fuzz-new",
    (ApiKey.FIND_COORDINATOR, "key_type"): 0,
    (ApiKey.PRODUCE, "transactional_id"): None,
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "name"): "retention.ms",
    (ApiKey.ALTER_CONFIGS, "name"): "retention.ms",
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "value"): "600000",
    (ApiKey.ALTER_CONFIGS, "value"): "600000",
    (ApiKey.ALTER_CLIENT_QUOTAS, "key"): "producer_byte_rate",
    (ApiKey.UPDATE_FEATURES, "feature"): "metadata.version",
    (ApiKey.DESCRIBE_CLUSTER, "endpoint_type"): 1,
    (ApiKey.JOIN_GROUP, "metadata"): bytes.fromhex("0001000000010004666f6f6f00000000"),
    (ApiKey.JOIN_GROUP, "name"): "range",
    (ApiKey.SASL_HANDSHAKE, "mechanism"): "PLAIN",
}
NOTHING: dict[str, Any] = {"string": "", "bytes": b"", "records": b"", "array": []}
"""The emptiest value of what cannot be null."""
REPLICA_ASSIGNMENTS = ("assignments", "replicas", "log_dirs", "cursor", "timeout_ms_")
"""Fields that stay empty: a value would contradict the other fields."""


def valid_requests(world: World) -> Iterator[Recorded]:
    """Make one request of every API and version that each listener serves."""
    for listener, apis in APIS.items():
        for key in apis:
            versions = API_VERSION_RANGES[key]
            for version in range(versions.served_min, versions.max + 1):
                message = valid_request(key, version, world, listener)
                yield Recorded(listener, key, version, message)


def valid_request(key: ApiKey, version: int, world: World, listener: str) -> Message:
    """Make one request."""
    message: Message = _struct(request_class(key), key, version, world)
    if listener == CONTROLLER and key is ApiKey.DESCRIBE_CLUSTER and version:
        message.endpoint_type = 2  # type: ignore[attr-defined]
    if listener in TOKENS and key is ApiKey.SASL_AUTHENTICATE:
        message.auth_bytes = TOKENS[listener]  # type: ignore[attr-defined]
    return message


def before(listener: str, frame: bytes) -> list[bytes]:
    """Return the frames that have to come first: a token comes after the choice of a mechanism."""
    if listener == LOGGED_IN:
        login = SaslAuthenticateRequest(auth_bytes=TOKENS["PLAIN"])
        asked = Recorded(listener, ApiKey.SASL_AUTHENTICATE, 1, login).frame()
        return [*before("PLAIN", asked), asked]
    if listener not in TOKENS or frame[:2] != ApiKey.SASL_AUTHENTICATE.to_bytes(2, "big"):
        return []
    chosen = SaslHandshakeRequest(mechanism=listener)
    return [Recorded(listener, ApiKey.SASL_HANDSHAKE, 1, chosen).frame()]


def _struct(struct: type[Struct], key: ApiKey, version: int, world: World) -> Any:
    layout = layout_of(struct, version)
    return struct(
        **{field.name: _value(field, key, version, world) for field in layout.plain + layout.tagged}
    )


def _value(field: Field, key: ApiKey, version: int, world: World) -> Any:
    if field.name in REPLICA_ASSIGNMENTS and world.optional is not Optional.FILLED:
        return None if is_nullable(field, version) else []
    if world.optional is Optional.EMPTY and (is_nullable(field, version) or field.kind in NOTHING):
        return None if is_nullable(field, version) else NOTHING[field.kind]
    if not isinstance(field.element or "", str):
        if field.kind == "struct" and is_nullable(field, version) and not world.is_filled:
            return None
        one = _struct(field.element, key, version, world)  # type: ignore[arg-type]
    else:
        kind = str(field.element or field.kind)
        one = _plain(field.name, kind, key, world)
        if one is None and (world.is_filled or not is_nullable(field, version)):
            one = _plain("", kind, key, world)
    return [one] if field.kind == "array" else one


def _plain(name: str, kind: str, key: ApiKey, world: World) -> Any:
    if (key, name) in PER_API:
        return PER_API[key, name]
    is_about_metadata = key in range(ApiKey.VOTE, ApiKey.DESCRIBE_QUORUM + 1) or key == 59
    match kind:
        case "string" if name == "cluster_id":
            return world.cluster_id
        case "string" if is_about_metadata and name in ("topic_name", "name", "topic"):
            return "__cluster_metadata"
        case "string" if name == "path":
            return world.log_dir
        case "string":
            return STRINGS.get(name, TOPIC if name in ("topics", "topic_names") else GROUP)
        case "uuid":
            return world.topic_id if "topic" in name else ZERO_ID
        case "bytes":
            return b"\x00\x01"
        case "records":
            return BATCH
        case "bool":
            return False
        case _:
            return NUMBERS.get(name, 0)


def pick(requests: list[Recorded], random: Random) -> Recorded:
    """Choose an API first, so that APIs with many versions are not more likely."""
    sasl = random.choice(list(TOKENS))
    listener = random.choice((*(BROKER,) * 5, *(CONTROLLER,) * 2, *(LOGGED_IN,) * 3, sasl))
    key = random.choice(APIS[listener])
    return random.choice([r for r in requests if (r.listener, r.api_key) == (listener, key)])
