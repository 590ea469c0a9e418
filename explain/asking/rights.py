"""Asks for access rules and quotas."""

from collections.abc import Collection, Iterable

from common.kafka.acls import AclFilter, AclOperation, ResourceType
from common.kafka.admin.acls import describe_acls
from common.kafka.admin.client import AdminClient
from common.kafka.admin.configs import Resource, describe_all
from common.kafka.admin.configs import ResourceType as Configured
from common.kafka.admin.quotas import Quotas, describe_quotas
from common.kafka.errors import ErrorCode, KafkaError
from explain.asking.questions import Questions
from explain.facts import Cluster, Quota, Right, Unanswered
from explain.rights import Rules, right

Wanted = tuple[AclOperation, ResourceType, str]
"""An operation on a resource, by its name."""
SUPER_USERS, FOR_EVERYONE = "super.users", "allow.everyone.if.no.acl.found"
OF_CONSUMERS = ("consumer_byte_rate", "request_percentage")
ENTITIES = (("client-id",), ("user",), ("user", "client-id"))


def rights_of(
    questions: Questions, cluster: Cluster, principal: str | None, wanted: Iterable[Wanted]
) -> tuple[Right, ...]:
    """Tell what a principal may do; nothing without a principal, or where there are no rules."""
    if principal is None:
        return ()
    rules = _rules(questions, cluster)
    if rules is None:
        return ()
    return tuple(right(rules, principal, *each) for each in wanted)


def _rules(questions: Questions, cluster: Cluster) -> Rules | None:
    try:
        acls = describe_acls(questions.client, AclFilter())
    except KafkaError as error:
        if error.code != ErrorCode.SECURITY_DISABLED:
            questions.note("the access rules", error)
        return None
    up = [node_id for node_id in sorted(cluster.brokers) if cluster.is_up(node_id)]

    def settings(client: AdminClient) -> dict[str, str | None]:
        wanted = Resource(Configured.BROKER, str(up[0]))
        return {one.name: one.value for one in describe_all(client, [wanted])[wanted]}

    found = questions.ask("the settings of the authorizer", settings, {}) if up else {}
    for name in (SUPER_USERS, FOR_EVERYONE):
        if found.get(name, "") is None:
            # Apache Kafka's brokers do not know the type of an authorizer's setting.
            text = "the brokers keep it secret, and it may allow what no rule allows"
            questions.unanswered.append(Unanswered(f"the setting {name}", "NOT_TOLD", text))
    return Rules(
        acls,
        frozenset(filter(None, (found.get(SUPER_USERS) or "").split(";"))),
        found.get(FOR_EVERYONE) == "true",
    )


def quotas_of(
    questions: Questions, client_ids: Collection[str], principal: str | None
) -> tuple[Quota, ...]:
    """Return the quotas for consumers with these client ids, of this user or of any."""
    user = principal.removeprefix("User:") if principal is not None else None

    def ask(client: AdminClient) -> list[Quotas]:
        return [one for kinds in ENTITIES for one in describe_quotas(client, {}, list(kinds))]

    def is_meant(one: Quotas) -> bool:
        client_id = one.entity.get("client-id")
        is_client = client_id is None or client_id in client_ids
        named = one.entity.get("user")
        return is_client and (named is None or named == user)

    return tuple(
        Quota(name=name, value=value, entity=_entity(one))
        for one in questions.ask("the quotas", ask, [])
        if is_meant(one)
        for name, value in sorted(one.values.items())
        if name in OF_CONSUMERS
    )


def _entity(one: Quotas) -> str:
    return ", ".join(f"{kind} {name or '(default)'}" for kind, name in sorted(one.entity.items()))
