"""Finds the quota of a client among those of the cluster's metadata, with Kafka's precedence.

The first entity in this order that has the quota counts (KIP-55):

    1 user and client id      4 default user and client id      7 client id
    2 user and default id     5 default user and default id     8 default id
    3 user                    6 default user

All clients that match an entity with a name share its rate. A default gives each user, or each
client id, a rate of its own: the rate belongs to the names that the entity's types stand for.
"""

from collections.abc import Mapping
from typing import NamedTuple

from broker.model import plain_address

USER, CLIENT_ID, IP = "user", "client-id", "ip"

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Entity type and name, sorted by type. A name of None is the default of its type."""


def quota_entity(parts: dict[str, str | None]) -> QuotaEntity:
    """Return the key of an entity."""
    return tuple(sorted(parts.items(), key=lambda part: part[0]))


class Holder(NamedTuple):
    """The clients that share one rate; None stands for any user or any client id."""

    user: str | None
    client_id: str | None


class Quota(NamedTuple):
    """A limit, and the clients that share it."""

    holder: Holder
    limit: float


_ORDER = (
    ((USER, False), (CLIENT_ID, False)),
    ((USER, False), (CLIENT_ID, True)),
    ((USER, False),),
    ((USER, True), (CLIENT_ID, False)),
    ((USER, True), (CLIENT_ID, True)),
    ((USER, True),),
    ((CLIENT_ID, False),),
    ((CLIENT_ID, True),),
)
"""Each kind of entity: its types, each with whether it is the default."""


class ClientQuotas:
    """The quotas of users, client ids and both."""

    def __init__(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        self._quotas = {
            entity: dict(limits)
            for entity, limits in quotas.items()
            if entity and entity[0][0] != IP
        }

    @property
    def is_empty(self) -> bool:
        """True if no client has any quota."""
        return not self._quotas

    def find(self, key: str, user: str, client_id: str) -> Quota | None:
        """Return the quota of a client under this key, None if it has none."""
        names = {USER: user, CLIENT_ID: client_id}
        for kind in _ORDER:
            entity = quota_entity(
                {each: None if is_default else names[each] for each, is_default in kind}
            )
            limit = self._quotas.get(entity, {}).get(key)
            if limit is not None:
                types = {each for each, _ in kind}
                return Quota(
                    Holder(
                        user if USER in types else None, client_id if CLIENT_ID in types else None
                    ),
                    limit,
                )
        return None


class AddressQuotas:
    """The connection creation rates of addresses; the default is for each other address."""

    def __init__(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        self._limits: dict[str | None, float] = {}
        for entity, limits in quotas.items():
            if len(entity) == 1 and entity[0][0] == IP and CONNECTION_CREATION_RATE in limits:
                name = entity[0][1]
                key = None if name is None else plain_address(name)
                self._limits[key] = limits[CONNECTION_CREATION_RATE]

    @property
    def is_empty(self) -> bool:
        """True if no address has a limit."""
        return not self._limits

    def find(self, address: str) -> float | None:
        """Return the limit of an address in connections per second, None if it has none."""
        return self._limits.get(address, self._limits.get(None))
