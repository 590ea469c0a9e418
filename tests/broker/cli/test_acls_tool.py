"""`millstream acls`: the rules that its arguments stand for, and what it prints of rules."""

import pytest

from broker.cli.acls import add_arguments, entry_lines, heading, print_acls, read_options
from broker.cli.arguments import ToolFailed, tool_parser
from broker.cli.scram_options import (
    MECHANISMS_BY_NAME,
    new_credential,
    parse_credential,
    parse_fields,
)
from common.credentials.scram import SCRAM_SHA_256, salted_password
from common.kafka.acls import (
    Acl,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)

TOPIC = ResourcePattern(ResourceType.TOPIC, "orders", PatternType.LITERAL)
GROUP = ResourcePattern(ResourceType.GROUP, "packing", PatternType.LITERAL)
CLUSTER = ResourcePattern(ResourceType.CLUSTER, "kafka-cluster", PatternType.LITERAL)


def rules(*arguments: str) -> set[tuple[str, str, str, str, str]]:
    """Return resource, name, principal, operation and permission of every rule."""
    parser = tool_parser("acls", "")
    add_arguments(parser)
    options = read_options(parser, parser.parse_args(list(arguments)))
    return {
        (
            ResourceType(pattern.resource_type).name,
            pattern.name,
            f"{principal}@{host}",
            AclOperation(operation).name,
            PermissionType(permission).name,
        )
        for pattern, entries in options.entries.items()
        for principal, host, operation, permission in entries
    }


def test_operations_of_a_principal() -> None:
    found = rules(
        *("--add", "--topic", "orders", "--operation", "Read", "--operation", "Describe"),
        *("--allow-principal", "User:alice", "--deny-principal", "User:eve"),
        *("--deny-host", "10.0.0.1"),
    )
    assert found == {
        ("TOPIC", "orders", "User:alice@*", "READ", "ALLOW"),
        ("TOPIC", "orders", "User:alice@*", "DESCRIBE", "ALLOW"),
        ("TOPIC", "orders", "User:eve@10.0.0.1", "READ", "DENY"),
        ("TOPIC", "orders", "User:eve@10.0.0.1", "DESCRIBE", "DENY"),
    }


def test_without_an_operation_it_is_all() -> None:
    found = rules("--add", "--cluster", "--allow-principal", "User:a")
    assert found == {("CLUSTER", "kafka-cluster", "User:a@*", "ALL", "ALLOW")}


def test_what_a_producer_and_a_consumer_need() -> None:
    producer = rules(
        *("--add", "--producer", "--idempotent", "--topic", "orders"),
        *("--transactional-id", "tx", "--allow-principal", "User:a"),
    )
    assert {(kind, operation) for kind, _, _, operation, _ in producer} == {
        ("TOPIC", "WRITE"),
        ("TOPIC", "DESCRIBE"),
        ("TOPIC", "CREATE"),
        ("TRANSACTIONAL_ID", "WRITE"),
        ("TRANSACTIONAL_ID", "DESCRIBE"),
        ("CLUSTER", "IDEMPOTENT_WRITE"),
    }
    consumer = rules(
        *("--add", "--consumer", "--topic", "orders", "--group", "packing"),
        *("--allow-principal", "User:a"),
    )
    assert {(kind, operation) for kind, _, _, operation, _ in consumer} == {
        ("TOPIC", "READ"),
        ("TOPIC", "DESCRIBE"),
        ("GROUP", "READ"),
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("", "exactly one action"),
        ("--add --list", "exactly one action"),
        ("--add --allow-principal User:a", "at least one resource"),
        ("--add --topic t", "--allow-principal, --deny-principal"),
        ("--add --topic t --resource-pattern-type any --allow-principal User:a", "not valid"),
        ("--add --topic t --resource-pattern-type x --allow-principal User:a", "not valid"),
        ("--add --consumer --topic t --allow-principal User:a", "must specify a --group"),
        ("--add --producer --group g --allow-principal User:a", "must specify a --topic"),
        (
            "--add --producer --topic t --operation Read --allow-principal User:a",
            "can't be used",
        ),
        (
            "--add --group g --operation Create --allow-principal User:a",
            "GROUP only supports operations [ALL, READ, DELETE, DESCRIBE",
        ),
    ],
)
def test_wrong_arguments_end_with_status_1(
    arguments: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        rules(*arguments.split())
    assert ended.value.code == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--add --topic t --allow-principal bob", "principalType:principalName but got bob"),
        ("--add --topic t --operation Foo --allow-principal User:a", "No operation is called Foo"),
    ],
)
def test_wrong_words_are_told(arguments: str, said: str) -> None:
    with pytest.raises(ToolFailed, match=said):
        rules(*arguments.split())


def test_rules_are_printed_as_kafkas_tool_prints_them(capsys: pytest.CaptureFixture[str]) -> None:
    acls = [
        Acl(TOPIC, "User:alice", "*", AclOperation.WRITE, PermissionType.ALLOW),
        Acl(TOPIC, "User:alice", "*", AclOperation.READ, PermissionType.ALLOW),
    ]
    resource = "ResourcePattern(resourceType=TOPIC, name=orders, patternType=LITERAL)"
    assert heading("Adding", TOPIC) == f"Adding ACLs for resource `{resource}`: "
    assert entry_lines(acls[:1]) == (
        " \t(principal=User:alice, host=*, operation=WRITE, permissionType=ALLOW)\n"
    )
    print_acls(acls)
    assert capsys.readouterr().out == (
        f"Current ACLs for resource `{resource}`:\n"
        "\t(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)\n"
        "\t(principal=User:alice, host=*, operation=WRITE, permissionType=ALLOW)\n\n"
    )


def test_a_scram_credential_of_its_parts() -> None:
    mechanism = MECHANISMS_BY_NAME["SCRAM-SHA-256"]
    new = new_credential(mechanism, parse_fields("[iterations=8192,password=s=1]"), bytes)
    assert new.iterations == 8192
    assert new.salted == salted_password(SCRAM_SHA_256, "s=1", new.salt, 8192)
    salted = new_credential(mechanism, parse_fields("salt=c2FsdA==,saltedpassword=AAAA"), bytes)
    assert (salted.salt, salted.salted, salted.iterations) == (b"salt", b"\0\0\0", 4096)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[iterations=4096,password=x,y=z]", {"iterations": "4096", "password": "x,y=z"}),
        ("[password=x,iterations=8192]", {"password": "x,iterations=8192"}),
        ("password=[a],]", {"password": "[a],"}),
    ],
)
def test_the_password_of_configs_is_everything_to_the_end(
    text: str, expected: dict[str, str]
) -> None:
    """kafka-configs reads them so; its users' passwords have commas."""
    assert parse_credential(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "password",
        "password=secret,iterations=4095",
        "password=secret,iterations=x",
        "password=",
        "iterations=4096",
        "password=secret,saltedpassword=AAAA",
        "saltedpassword=AAAA",
        "password=secret,password=secret",
        "password=secret,salt=%%",
        "password=secret,other=1",
    ],
)
def test_a_wrong_scram_credential_is_refused_without_its_password(text: str) -> None:
    with pytest.raises(ToolFailed) as raised:
        new_credential(SCRAM_SHA_256, parse_fields(text), bytes)
    assert "secret" not in str(raised.value)
