"""PLAIN, Kafka's JAAS syntax and names of principals."""

import pytest

from broker.security.plain import MAX_MESSAGE_BYTES, PlainServer
from broker.security.principal import (
    parse_mapping_rules,
    parse_super_users,
    principal_of_subject,
)
from common.credentials.errors import AuthenticationFailed
from common.credentials.jaas import Login, parse_jaas
from millstream.processes.settings_files import PLAIN_MODULE

PASSWORDS = {"alice": "her password", "empty": ""}


@pytest.mark.parametrize("message", [b"\0alice\0her password", b"alice\0alice\0her password"])
def test_plain_accepts_the_right_password(message: bytes) -> None:
    exchange = PlainServer(PASSWORDS)
    assert exchange.receive(message) == b""
    assert (exchange.is_complete, exchange.user) == (True, "alice")
    with pytest.raises(AuthenticationFailed):
        exchange.receive(message)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\0alice",
        b"\0alice\0",
        b"\0alice\0wrong",
        b"\0bob\0her password",
        b"admin\0alice\0her password",  # CVE-2017-12610
        b"\0alice\0her password\0",
        b"\0empty\0",
        b"\xff\0alice\0her password",
        b"\0alice\0" + b"x" * MAX_MESSAGE_BYTES,
    ],
)
def test_plain_refuses_everything_else(message: bytes) -> None:
    exchange = PlainServer(PASSWORDS)
    with pytest.raises(AuthenticationFailed):
        exchange.receive(message)
    assert not exchange.is_complete


def test_a_jaas_entry_as_kafkas_documentation_shows_it() -> None:
    text = (
        f'{PLAIN_MODULE} required \\\n    username="admin" \\\n'.replace("\\\n", "\n")
        + '    password="admin-secret" user_admin="admin-secret" user_alice="al\\"i=c;e";'
    )
    login = parse_jaas(text)
    assert login.module == PLAIN_MODULE
    assert login.options["username"] == "admin"
    assert login.passwords == {"admin": "admin-secret", "alice": 'al"i=c;e'}
    assert parse_jaas("m Required a=b c = d ;") == Login("m", {"a": "b", "c": "d"})


@pytest.mark.parametrize(
    "text",
    ["", "module", "module required", 'm required a="secret', "m never a=b;", "m required a b;"],
)
def test_a_wrong_jaas_entry_is_refused_without_its_values(text: str) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        parse_jaas(text)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("rules", "subject", "principal"),
    [
        ("DEFAULT", "CN=a,OU=b", "User:CN=a,OU=b"),
        ("", "CN=a", "User:CN=a"),
        ("RULE:^CN=(.*?),.*$/$1/", "CN=Service.Users,OU=x", "User:Service.Users"),
        ("RULE:^CN=(.*?),.*$/$1/L, DEFAULT", "CN=ABC,OU=x", "User:abc"),
        ("RULE:^CN=(.*?)$/$1/U,DEFAULT", "O=x", "User:O=x"),
        ("RULE:^CN=(.*?),O=(.*)$/$2.$1$9/", "CN=a,O=b", "User:b.a$9"),
        ("RULE:^CN=(.*?),O=(.*)$/$0:$21$01/", "CN=a,O=b", "User:CN=a,O=b:b1a"),
        (r"RULE:^CN=(.*)\/(.*)$/\$\/$2/L", "CN=A/B", "User:$/b"),
        ("RULE:(.*)/x$1/", "CN=a", "User:xCN=ax"),
        ("RULE:.*CN=(.*?),.*/$1/U", "O=x,CN=bob,C=y", "User:BOB"),
        ("RULE:^CN=(.*)$/$10/", "CN=a", "User:a0"),
        ("RULE:^CN=(.*)$/a,b $1/,DEFAULT", "CN=a", "User:a,b a"),
        ("RULE:^(?i)cn=(.*)$/$1/", "CN=a", "User:a"),
        (r"RULE:^CN=(.*)$/\\$1/", "CN=a", "User:\\a"),
        ("RULE:^CN=(?P<name>.*)$/${name}/", "CN=a", "User:a"),
    ],
)
def test_a_certificates_subject_becomes_a_principal(
    rules: str, subject: str, principal: str
) -> None:
    assert principal_of_subject(subject, parse_mapping_rules(rules)) == principal


@pytest.mark.parametrize(
    "rules",
    [
        *("RULE:x", "RULE:(/a/", "other", "DEFAULT DEFAULT", "RULE:a/b"),
        *("RULE:a/$1/", "RULE:(a)/$/", "RULE:(a)/${b}/", "RULE:(?=a)/x/", r"RULE:(a)\1/x/"),
    ],
)
def test_wrong_mapping_rules_are_refused(rules: str) -> None:
    with pytest.raises(ValueError, match=r"expected|invalid"):
        parse_mapping_rules(rules)


def test_a_subject_that_no_rule_matches_has_no_principal() -> None:
    with pytest.raises(ValueError, match="no rule"):
        principal_of_subject("O=x", parse_mapping_rules("RULE:^CN=(.*)$/$1/"))


def test_super_users_stand_between_semicolons() -> None:
    assert parse_super_users("User:a; User:CN=b,O=c;") == {"User:a", "User:CN=b,O=c"}
    with pytest.raises(ValueError, match="type:name"):
        parse_super_users("alice")
