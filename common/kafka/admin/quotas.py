"""Quotas of clients, users and IP addresses."""

from collections.abc import Mapping
from typing import NamedTuple

from common.kafka.admin.client import AdminClient, To, raise_for
from common.kafka.protocol.messages import alter_client_quotas, describe_client_quotas

MATCH_NAME, MATCH_DEFAULT, MATCH_ANY = 0, 1, 2

Entity = dict[str, str | None]
"""Entity type to name; the name None is the default of the type."""


class Quotas(NamedTuple):
    """The quotas of one entity, for instance of a pair of a user and a client id."""

    entity: Entity
    values: dict[str, float]


def describe_quotas(
    client: AdminClient, named: Mapping[str, str | None], any_of: list[str]
) -> list[Quotas]:
    """Return the quotas of entities with exactly these types, with these names or any."""
    components = [_component(kind, name) for kind, name in named.items()]
    components += [
        describe_client_quotas.ComponentData(entity_type=kind, match_type=MATCH_ANY, match=None)
        for kind in any_of
    ]
    request = describe_client_quotas.DescribeClientQuotasRequest(components=components, strict=True)
    response = client.ask(request, describe_client_quotas.DescribeClientQuotasResponse)
    raise_for(response.error_code, response.error_message)
    return [
        Quotas(
            {part.entity_type: part.entity_name for part in entry.entity},
            {value.key: value.value for value in entry.values},
        )
        for entry in response.entries or []
    ]


def alter_quotas(client: AdminClient, entity: Entity, changes: Mapping[str, float | None]) -> None:
    """Set quotas of an entity, or remove those whose value is None."""
    entry = alter_client_quotas.EntryData(
        entity=[
            alter_client_quotas.EntityData(entity_type=kind, entity_name=name)
            for kind, name in entity.items()
        ],
        ops=[
            alter_client_quotas.OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in changes.items()
        ],
    )
    request = alter_client_quotas.AlterClientQuotasRequest(entries=[entry])
    response = client.ask(request, alter_client_quotas.AlterClientQuotasResponse, To.CONTROLLER)
    for result in response.entries:
        raise_for(result.error_code, result.error_message)


def _component(kind: str, name: str | None) -> describe_client_quotas.ComponentData:
    match_type = MATCH_DEFAULT if name is None else MATCH_NAME
    return describe_client_quotas.ComponentData(entity_type=kind, match_type=match_type, match=name)
