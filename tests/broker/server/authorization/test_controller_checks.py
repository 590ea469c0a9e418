"""The checks of a controller's listener: the cluster's own nodes, and clients that come to it."""

from types import SimpleNamespace
from typing import Any

import pytest

from broker.security.authorizer import Authorizer, Requester
from broker.server.authorization.audit import Audit
from broker.server.authorization.guard import Guard
from broker.server.authorization.table import CHECKS
from broker.server.authorization.verdicts import Narrowed, Refused, Verdict
from broker.server.clock import SystemClock
from broker.server.quorum.controller.controller_dispatch import SERVED_APIS
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import API_VERSION_RANGES, ApiKey
from common.kafka.protocol.framing import request_class, response_class
from common.kafka.protocol.structs import encode_struct
from tests.lib.protocol_messages import sample

NODE, ALICE = Requester("User:node", "127.0.0.1"), Requester("User:alice", "127.0.0.1")
CHECKED = sorted(SERVED_APIS - {ApiKey.API_VERSIONS})
OF_NODES_ONLY = {*SERVED_APIS - set(CHECKS), ApiKey.FETCH}
DENIALS = {code for code in ErrorCode if code.name.endswith("AUTHORIZATION_FAILED")}
ASKED_OF_OWNERS = {
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_CLUSTER,
}
"""Owner and renewers are compared, or the answer is shortened, as at a broker."""


def verdict_on(requester: Requester, key: ApiKey, version: int) -> Verdict:
    rules: Any = SimpleNamespace(current=lambda: Authorizer([], super_users={NODE.principal}))
    topics: Any = SimpleNamespace(
        creates_topics=False, name_of=lambda topic_id: "orders", exists=lambda name: False
    )
    request = sample(request_class(key), version)
    return Guard(rules, topics, Audit(SystemClock())).controllers_verdict(
        requester, request, version
    )


def versions_of(key: ApiKey) -> range:
    return range(API_VERSION_RANGES[key].served_min, API_VERSION_RANGES[key].max + 1)


@pytest.mark.parametrize("key", CHECKED, ids=lambda key: key.name)
def test_a_client_without_rights_gets_nothing_and_a_node_may_ask_everything(key: ApiKey) -> None:
    for version in versions_of(key):
        assert verdict_on(NODE, key, version) is None
        verdict = verdict_on(ALICE, key, version)
        if key in ASKED_OF_OWNERS:
            continue
        if isinstance(verdict, Narrowed):
            answer: Any = response_class(key)()
            verdict.complete(answer)
            verdict = Refused(answer)
        assert isinstance(verdict, Refused), (key, version)
        encode_struct(verdict.response, version)


def test_what_nodes_say_to_each_other_needs_cluster_action() -> None:
    """Raft, registrations and envelopes, which carry another user's name."""
    assert {ApiKey.VOTE, ApiKey.BROKER_REGISTRATION, ApiKey.ENVELOPE} <= OF_NODES_ONLY
    for key in OF_NODES_ONLY - {ApiKey.API_VERSIONS}:
        for version in versions_of(key):
            verdict = verdict_on(ALICE, key, version)
            assert isinstance(verdict, Refused), (key, version)
            answer: Any = verdict.response
            assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
