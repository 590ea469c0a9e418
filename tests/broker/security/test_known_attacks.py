"""Known classes of attacks on Kafka: where each is tested, and those that belong to no module.

CVE-2017-12610  on behalf of somebody else        test_plain_jaas_principal, test_scram
CVE-2018-1288   a client that fetches as replica  test_forged_requests, test_checks
CVE-2018-17196  a Produce that hides what it is   test_transactional_produce
CVE-2019-12399  secrets in answers of Connect     test_kept_secrets
CVE-2021-38153  comparisons that take their time  here
CVE-2022-34917  a few bytes that announce many    test_bad_input_before_authentication
CVE-2023-25194  a login module that loads code    here; so CVE-2025-27818, CVE-2025-27819
CVE-2023-34455  a few bytes that unpack to many   test_batches_that_unpack_to_much
CVE-2024-27309  a deletion that takes others too  here
CVE-2024-31141  files and variables by Connect    test_local_files
CVE-2024-36543  Connect that anybody reaches      test_secured_http
CVE-2024-56128  the nonce of the last message     test_scram
CVE-2025-27817  an URL that a client chooses      here, test_security_config
CVE-2026-35554  a buffer that is used again       test_buffers
"""

import hmac
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.config.broker_config import BrokerConfig
from broker.config.dynamic_settings import validate_dynamic_settings, with_dynamic_settings
from broker.config.security_config import read_client_security
from broker.security.plain import PlainServer
from broker.security.scram import ScramServer
from common.credentials.errors import AuthenticationFailed
from common.credentials.scram import SCRAM_SHA_256, credential_from, salted_password
from common.credentials.translation import ClientSettingsError, librdkafka_security
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from common.kafka.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from tests.lib.controlled_cluster import ControlledCluster

JNDI = (
    "com.sun.security.auth.module.JndiLoginModule required "
    'username="a" password="b" user.provider.url="ldap://x";'
)


def about_unknown(user: str, is_token: bool) -> tuple[bytes, int]:
    return b"salt", 4096


def test_secrets_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that a wrong login is refused for goes through compare_digest."""
    compared: list[Any] = []

    def compare(ours: Any, theirs: Any) -> bool:
        compared.append(ours)
        return False

    monkeypatch.setattr(hmac, "compare_digest", compare)
    for user in ("alice", "nobody"):
        with pytest.raises(AuthenticationFailed):
            PlainServer({"alice": "secret"}).receive(f"\0{user}\0secret".encode())
        assert compared, user
        compared.clear()
    credential = credential_from(
        SCRAM_SHA_256, salted_password(SCRAM_SHA_256, "secret", b"salt", 4096), b"salt", 4096
    )
    server = ScramServer(SCRAM_SHA_256, {"alice": credential}.get, "server", about_unknown)
    nonce = server.receive(b"n,,n=alice,r=abc").split(b",")[0]
    proof = b64encode(bytes(32))
    with pytest.raises(AuthenticationFailed):
        server.receive(b"c=biws," + nonce + b",p=" + proof)
    assert compared


def test_the_name_of_a_login_module_is_a_word_that_loads_nothing() -> None:
    with pytest.raises(KafkaError, match="PLAIN takes"):
        BrokerConfig.from_settings(
            {
                "listeners": "SASL_PLAINTEXT://:1",
                "sasl.enabled.mechanisms": "PLAIN",
                "sasl.jaas.config": JNDI,
            }
        )
    client = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": JNDI,
    }
    with pytest.raises(KafkaError, match="PLAIN takes"):
        read_client_security(client)
    with pytest.raises(ClientSettingsError, match="PLAIN takes"):
        librdkafka_security(client)


@pytest.mark.parametrize(
    "name",
    [
        "sasl.oauthbearer.jwks.endpoint.url",
        "org.apache.kafka.sasl.oauthbearer.allowed.urls",
        "listener.name.client.oauthbearer.sasl.server.callback.handler.class",
        "ssl.keystore.location",
        "listener.name.client.ssl.truststore.location.other",
        "authorizer.class.name",
        "super.users",
    ],
)
def test_no_request_changes_how_a_node_authenticates(name: str) -> None:
    refusal = "Cannot update these configs dynamically|only per-listener"
    with pytest.raises(KafkaError, match=refusal) as raised:
        validate_dynamic_settings({name: "file:///etc/passwd"})
    assert raised.value.code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "name",
    [
        "sasl.jaas.config",
        "listener.name.client.plain.sasl.jaas.config",
        "listener.name.client.sasl.enabled.mechanisms",
        "sasl.kerberos.principal.to.local.rules",
    ],
)
def test_what_kafka_lets_a_request_change_of_logins_does_nothing(name: str) -> None:
    wanted = {name: "com.sun.security.auth.module.JndiLoginModule required;"}
    validate_dynamic_settings(wanted)
    static = BrokerConfig.from_settings({})
    assert with_dynamic_settings(static, {}, wanted) == static


rules = st.tuples(
    st.sampled_from([2, 3]),
    st.sampled_from(["orders", "order"]),
    st.sampled_from([3, 4]),
    st.sampled_from(["User:alice", "User:bob"]),
    st.sampled_from([3, 4]),
)
Rule = tuple[int, str, int, str, int]


@given(st.sets(rules, max_size=8), st.lists(rules, max_size=4))
def test_a_deletion_takes_its_own_rules_and_no_other(added: set[Rule], removed: list[Rule]) -> None:
    cluster = ControlledCluster(1)
    cluster.ask(CreateAclsRequest(creations=[_creation(rule) for rule in sorted(added)]))
    for rule in removed:
        cluster.ask(DeleteAclsRequest(filters=[_exactly(rule)]))
    left = {
        (
            acl.pattern.resource_type,
            acl.pattern.name,
            acl.pattern.pattern_type,
            acl.principal,
            acl.operation,
        )
        for acl in cluster.image.acls.values()
    }
    assert left == added - set(removed)


def _creation(rule: Rule) -> AclCreation:
    kind, name, pattern, principal, operation = rule
    return AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=pattern,
        principal=principal,
        host="*",
        operation=operation,
        permission_type=3,
    )


def _exactly(rule: Rule) -> DeleteAclsFilter:
    kind, name, pattern, principal, operation = rule
    return DeleteAclsFilter(
        resource_type_filter=kind,
        resource_name_filter=name,
        pattern_type_filter=pattern,
        principal_filter=principal,
        host_filter="*",
        operation=operation,
        permission_type=3,
    )
