"""CreateAcls, DeleteAcls and AlterUserScramCredentials: what the controller decides."""

from typing import Any

import pytest

from broker.metadata.control.limits import MAX_RECORDS_PER_REQUEST
from broker.metadata.image import MetadataImage
from broker.metadata.parts.scram import SECRET_BYTES, SECRET_KEEPER
from broker.metadata.snapshot import snapshot_records
from broker.server.cluster.security import described_credentials
from common.credentials.scram import SCRAM_SHA_256, credential_from, salted_password
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from common.kafka.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from common.kafka.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from common.kafka.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from common.kafka.protocol.records.metadata import RemoveUserScramCredentialRecord
from tests.lib.controlled_cluster import ControlledCluster

INVALID = int(ErrorCode.INVALID_REQUEST)


def creation(**changes: Any) -> AclCreation:
    given: dict[str, Any] = {
        "resource_type": 2,
        "resource_name": "orders",
        "resource_pattern_type": 3,
        "principal": "User:alice",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    return AclCreation(**{**given, **changes})


def create(cluster: ControlledCluster, *creations: AclCreation) -> list[int]:
    answer = cluster.ask(CreateAclsRequest(creations=list(creations)))
    return [int(result.error_code) for result in answer.results]


def delete(cluster: ControlledCluster, **wanted: Any) -> tuple[int, list[str]]:
    given: dict[str, Any] = {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    request = DeleteAclsRequest(filters=[DeleteAclsFilter(**{**given, **wanted})])
    (result,) = cluster.ask(request).filter_results
    return int(result.error_code), sorted(acl.principal for acl in result.matching_acls)


def principals(cluster: ControlledCluster) -> list[str]:
    return sorted(acl.principal for acl in cluster.image.acls.values())


def test_a_rule_is_added_once_and_the_image_has_another_version() -> None:
    cluster = ControlledCluster(1)
    version = cluster.image.acls.version
    assert create(cluster, creation(), creation(principal="User:bob"), creation()) == [0, 0, 0]
    assert create(cluster, creation()) == [0]
    assert principals(cluster) == ["User:alice", "User:bob"]
    assert cluster.image.acls.version == version + 2


@pytest.mark.parametrize(
    "changes",
    [
        {"resource_type": 0},
        {"resource_type": 1},
        {"resource_type": 99},
        {"resource_pattern_type": 1},
        {"resource_pattern_type": 2},
        {"operation": 1},
        {"operation": 77},
        {"permission_type": 1},
        {"resource_name": ""},
        {"resource_type": 4, "resource_name": "orders"},
        {"principal": "alice"},
        {"principal": ""},
        {"principal": ":alice"},
        {"resource_name": "x" * 250},
        {"resource_type": 3, "resource_name": "x" * 1_025},
        {"principal": "User:" + "x" * 4_096},
        {"host": "h" * 256},
    ],
)
def test_a_rule_that_cannot_be_is_refused_and_the_others_are_added(changes: Any) -> None:
    cluster = ControlledCluster(1)
    assert create(cluster, creation(**changes), creation()) == [INVALID, 0]
    assert principals(cluster) == ["User:alice"]


def test_filters_delete_what_they_match_once() -> None:
    cluster = ControlledCluster(1)
    users = [f"User:{name}" for name in ("alice", "bob", "carol")]
    create(cluster, *(creation(principal=user) for user in users))
    assert delete(cluster, principal_filter="User:bob") == (0, ["User:bob"])
    assert delete(cluster, resource_name_filter="other") == (0, [])
    assert delete(cluster, pattern_type_filter=0) == (INVALID, [])
    assert delete(cluster, resource_type_filter=2) == (0, ["User:alice", "User:carol"])
    assert principals(cluster) == []


def test_too_many_rules_at_once_are_refused_whole() -> None:
    cluster = ControlledCluster(1)
    many = [creation(resource_name=f"t{n}") for n in range(MAX_RECORDS_PER_REQUEST + 1)]
    assert set(create(cluster, *many)) == {int(ErrorCode.POLICY_VIOLATION)}
    assert principals(cluster) == []


def upsertion(user: str = "alice", **changes: Any) -> ScramCredentialUpsertion:
    salted = salted_password(SCRAM_SHA_256, "secret", b"salt", 4096)
    given: dict[str, Any] = {
        "name": user,
        "mechanism": 1,
        "iterations": 4096,
        "salt": b"salt",
        "salted_password": salted,
    }
    return ScramCredentialUpsertion(**{**given, **changes})


def alter(
    cluster: ControlledCluster,
    *upsertions: ScramCredentialUpsertion,
    deletions: tuple[tuple[str, int], ...] = (),
) -> dict[str, int]:
    request = AlterUserScramCredentialsRequest(
        upsertions=list(upsertions),
        deletions=[ScramCredentialDeletion(name=name, mechanism=each) for name, each in deletions],
    )
    return {result.user: int(result.error_code) for result in cluster.ask(request).results}


def test_the_first_credential_brings_the_secret_of_the_cluster_and_others_keep_it() -> None:
    cluster = ControlledCluster(1)
    assert SECRET_KEEPER not in cluster.image.scram
    alter(cluster, upsertion())
    secret = cluster.image.scram[SECRET_KEEPER].server_key
    assert len(secret) == SECRET_BYTES
    alter(cluster, upsertion("bob"))
    cluster.elect_controller()
    assert cluster.image.scram[SECRET_KEEPER].server_key == secret
    request = DescribeUserScramCredentialsRequest(users=None)
    described = described_credentials(cluster.image, request)
    assert [result.user for result in described.results] == ["alice", "bob"]
    named = DescribeUserScramCredentialsRequest(users=[UserName(name="")])
    (result,) = described_credentials(cluster.image, named).results
    assert result.error_code == ErrorCode.RESOURCE_NOT_FOUND


def test_a_controller_gives_a_secret_to_a_cluster_that_has_users_and_none() -> None:
    cluster = ControlledCluster(1)
    alter(cluster, upsertion())
    cluster.commit([RemoveUserScramCredentialRecord(name="", mechanism=SCRAM_SHA_256.number)])
    cluster.elect_controller()
    assert SECRET_KEEPER in cluster.image.scram


def test_the_answer_about_an_unknown_user_survives_a_snapshot() -> None:
    cluster = ControlledCluster(1)
    alter(cluster, upsertion(iterations=8192))
    loaded = MetadataImage()
    for record in snapshot_records(cluster.image):
        loaded.replay(record)
    answers = [
        image.scram.answer_about_unknown(SCRAM_SHA_256, "nobody", b"spare")
        for image in (cluster.image, loaded)
    ]
    assert answers[0] == answers[1]
    assert answers[0][1] == 8192


def test_a_credential_is_stored_without_the_password() -> None:
    cluster = ControlledCluster(1)
    assert alter(cluster, upsertion(), upsertion(mechanism=2)) == {"alice": 0}
    salted = salted_password(SCRAM_SHA_256, "secret", b"salt", 4096)
    expected = credential_from(SCRAM_SHA_256, salted, b"salt", 4096)
    assert cluster.image.scram["alice", 1] == expected
    assert alter(cluster, deletions=(("alice", 1),)) == {"alice": 0}
    assert cluster.image.scram.keys() - {SECRET_KEEPER} == {("alice", 2)}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"user": ""}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"mechanism": 0}, ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ({"mechanism": 3}, ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ({"iterations": 4095}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"iterations": 16_385}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"salt": b""}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"salted_password": b""}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
    ],
)
def test_a_wrong_credential_is_refused_and_others_are_stored(changes: Any, code: int) -> None:
    cluster = ControlledCluster(1)
    user = changes.get("user", "alice")
    assert alter(cluster, upsertion(**changes), upsertion("bob")) == {user: int(code), "bob": 0}
    assert cluster.image.scram.keys() - {SECRET_KEEPER} == {("bob", 1)}


def test_twice_in_one_request_and_a_deletion_of_nothing_are_refused() -> None:
    cluster = ControlledCluster(1)
    twice = int(ErrorCode.DUPLICATE_RESOURCE)
    assert alter(cluster, upsertion(), deletions=(("alice", 1),)) == {"alice": twice}
    missing = int(ErrorCode.RESOURCE_NOT_FOUND)
    assert alter(cluster, deletions=(("alice", 1),)) == {"alice": missing}
    assert not cluster.image.scram
