"""The security of listeners, from settings in Kafka's spelling."""

from typing import Any

import pytest

from broker.config.broker_config import BrokerConfig
from broker.config.oauth_config import OauthConfig
from broker.config.security_config import (
    STANDARD_AUTHORIZER,
    SecurityProtocol,
    read_client_security,
)
from broker.config.sources import collect_settings
from common.credentials.jaas import KERBEROS_MODULE, SCRAM_MODULE
from common.kafka.errors import KafkaError
from common.process.properties import parse_properties
from millstream.processes.settings_files import PLAIN_MODULE


def read(**given: str) -> BrokerConfig:
    return BrokerConfig.from_settings(
        {name.replace("__", "."): each for name, each in given.items()}
    )


def from_text(text: str) -> BrokerConfig:
    settings = parse_properties(text)
    overrides = [f"{name}={value}" for name, value in settings.items()]
    return BrokerConfig.from_settings(
        collect_settings(file=None, environment={}, overrides=overrides)
    )


KAFKAS_OWN = f"""
node.id=1
process.roles=broker,controller
listeners=INTERNAL://:9091,CLIENT://:9092,SECURE://:9094,CONTROLLER://:9093
advertised.listeners=INTERNAL://h:9091,CLIENT://h:9092,SECURE://h:9094
controller.listener.names=CONTROLLER
controller.quorum.voters=1@localhost:9093
inter.broker.listener.name=INTERNAL
listener.security.protocol.map=INTERNAL:PLAINTEXT,CLIENT:SASL_PLAINTEXT,SECURE:SASL_SSL,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.client.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256
listener.name.client.plain.sasl.jaas.config={PLAIN_MODULE} required \\
    username="admin" password="admin-secret" \\
    user_admin="admin-secret" user_alice="alice-secret";
listener.name.secure.scram-sha-512.sasl.jaas.config={SCRAM_MODULE} required;
listener.name.secure.ssl.keystore.location=/certificates/broker.pem
listener.name.secure.ssl.keystore.type=PEM
ssl.truststore.location=/certificates/ca.pem
listener.name.secure.ssl.client.auth=required
ssl.principal.mapping.rules=RULE:^CN=(.*?),.*$/$1/,DEFAULT
authorizer.class.name={STANDARD_AUTHORIZER}
super.users=User:admin;User:CN=broker
"""


def test_a_file_as_kafkas_documentation_shows_it() -> None:
    config = from_text(KAFKAS_OWN).security
    client, secure = config.listeners["CLIENT"], config.listeners["SECURE"]
    assert config.listeners["INTERNAL"].protocol is SecurityProtocol.PLAINTEXT
    assert client.tls is None
    assert client.sasl is not None
    assert client.sasl.mechanisms == ["PLAIN", "SCRAM-SHA-256"]
    assert client.sasl.logins["PLAIN"].passwords["alice"] == "alice-secret"
    assert secure.sasl is not None
    assert secure.sasl.mechanisms == ["SCRAM-SHA-512"]
    assert secure.tls is not None
    assert secure.tls.keystore.location == "/certificates/broker.pem"
    assert secure.tls.truststore is not None
    assert (secure.tls.client_auth, len(secure.tls.mapping_rules)) == ("required", 2)
    assert config.authorizer is not None
    assert config.authorizer.super_users == {"User:admin", "User:CN=broker"}


def test_a_node_without_security_settings_has_none() -> None:
    config = read().security
    assert config.authorizer is None
    assert {each.protocol for each in config.listeners.values()} == {SecurityProtocol.PLAINTEXT}


def test_a_lone_node_authenticates_to_itself() -> None:
    """It asks itself, as a coordinator, whether a batch belongs to a transaction."""
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl__enabled__mechanisms": "PLAIN",
        "sasl__jaas__config": f'{PLAIN_MODULE} required username="a" password="b" user_a="b";',
    }
    with pytest.raises(KafkaError, match=r"sasl\.mechanism\.inter\.broker\.protocol"):
        read(**settings)
    config = read(**settings, sasl__mechanism__inter__broker__protocol="PLAIN")
    assert config.security.to_brokers.user == "a"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"listeners": "SSL://:1"}, "ssl.keystore.location"),
        ({"listeners": "OTHER://:1"}, "no security protocol"),
        (
            {"listeners": "SASL_PLAINTEXT://:1"},
            "listener.name.sasl_plaintext.gssapi.sasl.jaas.config needs useKeyTab=true",
        ),
        (
            {"listeners": "SASL_PLAINTEXT://:1", "sasl.enabled.mechanisms": "PLAIN"},
            "listener.name.sasl_plaintext.plain.sasl.jaas.config",
        ),
        (
            {
                "listeners": "SASL_PLAINTEXT://:1",
                "sasl.enabled.mechanisms": "PLAIN",
                "sasl.jaas.config": f"{SCRAM_MODULE} required;",
            },
            "PLAIN takes",
        ),
        ({"listeners": "SASL_PLAINTEXT://:1", "sasl.enabled.mechanisms": "DIGEST"}, "unknown"),
        ({"authorizer.class.name": "com.example.Authorizer"}, "there is org.apache.kafka"),
        ({"super.users": "User:a"}, "needs authorizer.class.name"),
        (
            {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "alice"},
            "type:name",
        ),
        (
            {
                "listeners": "SSL://:1",
                "ssl.keystore.location": "x",
                "ssl.client.auth": "required",
            },
            "ssl.truststore.location",
        ),
        (
            {"listeners": "SSL://:1", "ssl.keystore.key": "x"},
            "go together",
        ),
        (
            {
                "listeners": "SSL://:1",
                "ssl.keystore.location": "x",
                "ssl.enabled.protocols": "TLSv1.1",
            },
            "there are TLSv1.2",
        ),
        (
            {
                "listeners": "SASL_PLAINTEXT://:1,CONTROLLER://:2",
                "controller.quorum.voters": "1@localhost:2",
                "sasl.enabled.mechanisms": "SCRAM-SHA-256",
                "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
            },
            "needs username and password",
        ),
        (
            {
                "listeners": "SASL_PLAINTEXT://:1,CONTROLLER://:2",
                "controller.quorum.voters": "1@localhost:2",
                "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            },
            "sasl.mechanism.inter.broker.protocol=GSSAPI",
        ),
        ({"listener.security.protocol.map": "PLAINTEXT:TLS"}, "names no security protocol"),
    ],
)
def test_what_cannot_be_is_refused_in_words(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(KafkaError) as raised:
        BrokerConfig.from_settings(changes)
    assert said in str(raised.value.message)


def test_what_a_node_shows_to_the_others() -> None:
    config = from_text(
        KAFKAS_OWN.replace(
            "inter.broker.listener.name=INTERNAL", "inter.broker.listener.name=SECURE"
        )
        .replace("SECURE.scram", "secure.scram")
        .replace(f"{SCRAM_MODULE} required;", f'{SCRAM_MODULE} required username="b" password="p";')
        + "sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512\n"
    ).security
    assert config.to_controllers.protocol is SecurityProtocol.PLAINTEXT
    others = config.to_brokers
    assert (others.protocol, others.mechanism) == (SecurityProtocol.SASL_SSL, "SCRAM-SHA-512")
    assert (others.user, others.password, others.verifies_host) == ("b", "p", True)
    assert others.truststore is not None


def test_a_misspelt_setting_of_a_listener_is_refused() -> None:
    for name in ("listener.name.client.ssl.keystor.location", "listener.name.client.plain.x.jaas"):
        with pytest.raises(KafkaError, match="unknown setting"):
            collect_settings(file=None, environment={}, overrides=[f"{name}=x"])


# --- OAUTHBEARER ---

OAUTH = {
    "listeners": "SASL_PLAINTEXT://:1,PLAINTEXT://:2",
    "advertised.listeners": "SASL_PLAINTEXT://h:1,PLAINTEXT://h:2",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
}
URL = "https://issuer.example/keys"
ALLOWED = {
    "sasl.oauthbearer.jwks.endpoint.url": URL,
    "org.apache.kafka.sasl.oauthbearer.allowed.urls": f"file:///x,{URL}",
}
PACKAGE = "org.apache.kafka.common.security.oauthbearer"
HANDLER = "sasl.server.callback.handler.class"


def oauth_of(**given: str) -> OauthConfig:
    sasl = BrokerConfig.from_settings({**OAUTH, **given}).security.listeners["SASL_PLAINTEXT"].sasl
    assert sasl is not None
    assert sasl.oauth is not None
    return sasl.oauth


def test_oauth_takes_its_settings_from_the_mechanism_of_the_listener() -> None:
    prefix = "listener.name.sasl_plaintext.oauthbearer."
    own = {
        f"{prefix}{HANDLER}": f"{PACKAGE}.OAuthBearerValidatorCallbackHandler",
        f"{prefix}sasl.oauthbearer.expected.audience": "a, b",
        f"{prefix}sasl.oauthbearer.sub.claim.name": "uid",
        "sasl.oauthbearer.expected.issuer": "me",
        "sasl.oauthbearer.clock.skew.seconds": "7",
    }
    oauth = oauth_of(**ALLOWED, **own)
    rules = oauth.rules
    assert oauth.url == URL
    assert (rules.audiences, rules.user_claim, rules.issuer) == (("a", "b"), "uid", "me")
    assert (rules.skew_seconds, rules.scope_claim) == (7, "scope")


def test_unsecured_tokens_are_accepted_only_by_name() -> None:
    name = f"{PACKAGE}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
    jaas = f'{PACKAGE}.OAuthBearerLoginModule required unsecuredValidatorPrincipalClaimName="u";'
    oauth = oauth_of(**{HANDLER: name, "sasl.jaas.config": jaas})
    assert (oauth.url, oauth.rules.user_claim) == ("", "u")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "needs sasl.oauthbearer.jwks.endpoint.url"),
        ({"sasl.oauthbearer.jwks.endpoint.url": URL}, "must be one of those in"),
        ({**ALLOWED, "sasl.oauthbearer.jwks.endpoint.url": "ftp://x/"}, "must begin with"),
        ({**ALLOWED, "sasl.oauthbearer.jwks.endpoint.url": "http://[x/"}, "endpoint.url"),
        ({**ALLOWED, HANDLER: "org.example.Handler"}, "there are"),
        ({**ALLOWED, "sasl.oauthbearer.jwt.validator.class": "org.example.V"}, "no such class"),
        ({**ALLOWED, "sasl.jaas.config": f"{SCRAM_MODULE} required;"}, "OAUTHBEARER takes"),
    ],
)
def test_oauth_that_would_prove_nothing_is_refused(given: dict[str, str], said: str) -> None:
    with pytest.raises(KafkaError, match=said.replace(".", r"\.")):
        oauth_of(**given)


TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"
TOOL = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.jaas.config": f'{PACKAGE}.OAuthBearerLoginModule required clientId="a" clientSecret="b";',
    "sasl.login.callback.handler.class": f"{PACKAGE}.OAuthBearerLoginCallbackHandler",
    TOKEN_URL: "https://issuer.example/token",
}


def test_a_tool_has_its_token_from_an_issuer_or_a_file() -> None:
    oauth = read_client_security(TOOL).oauth
    assert oauth is not None
    assert (oauth.url, oauth.client_id, oauth.client_secret) == (TOOL[TOKEN_URL], "a", "b")
    assert "'b'" not in repr(oauth)
    without = {**TOOL, "sasl.jaas.config": f"{PACKAGE}.OAuthBearerLoginModule required;"}
    oauth = read_client_security({**without, TOKEN_URL: "file:///token"}).oauth
    assert oauth is not None
    assert oauth.url == "file:///token"
    with pytest.raises(KafkaError, match="needs clientId and clientSecret"):
        read_client_security(without)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({TOKEN_URL: ""}, "OAUTHBEARER needs file://, http:// or https://"),
        ({TOKEN_URL: "ftp://x"}, "OAUTHBEARER needs file://"),
        ({TOKEN_URL: "http://[x"}, "endpoint.url"),
        ({"sasl.login.callback.handler.class": "org.example.Handler"}, "there are"),
        ({"sasl.oauthbearer.jwt.retriever.class": "org.example.R"}, "there are"),
        ({"sasl.oauthbearer.assertion.file": "x"}, "is not built"),
        ({"org.apache.kafka.sasl.oauthbearer.allowed.urls": "file:///x"}, "must be one of"),
        ({"sasl.jaas.config": f"{SCRAM_MODULE} required clientId=a;"}, "OAUTHBEARER takes"),
    ],
)
def test_a_tool_without_a_token_is_refused(changed: dict[str, str], said: str) -> None:
    with pytest.raises(KafkaError, match=said.replace(".", r"\.")):
        read_client_security({**TOOL, **changed})


def test_a_node_has_its_token_from_a_place_that_is_allowed() -> None:
    node = {
        **OAUTH,
        **ALLOWED,
        "inter.broker.listener.name": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
    }
    for url, said in ((URL, "needs clientId"), ("file:///y", "must be one of those in")):
        with pytest.raises(KafkaError, match=said):
            BrokerConfig.from_settings({**node, TOKEN_URL: url})
    jaas = f'{PACKAGE}.OAuthBearerLoginModule required clientId="a" clientSecret="b";'
    for url, waits in (("file:///x", False), (URL, True)):
        told = {**node, TOKEN_URL: url, "sasl.jaas.config": jaas}
        to_brokers = BrokerConfig.from_settings(told).security.to_brokers
        assert to_brokers.oauth is not None
        assert (to_brokers.oauth.url, to_brokers.asks_others) == (url, waits)


# --- GSSAPI ---

KERBEROS = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "GSSAPI",
    "sasl.kerberos.service.name": "kafka",
    "sasl.jaas.config": f"{KERBEROS_MODULE} required useKeyTab=true keyTab=k principal=me@EXAMPLE;",
}


@pytest.mark.parametrize(
    ("changed", "login"),
    [
        ({}, ("kafka", "me@EXAMPLE", "k")),
        (
            {"sasl.jaas.config": f"{KERBEROS_MODULE} required useTicketCache=true;"},
            ("kafka", "", ""),
        ),
        (
            {
                "sasl.kerberos.service.name": "",
                "sasl.jaas.config": f"{KERBEROS_MODULE} required useTicketCache=true "
                "serviceName=s;",
            },
            ("s", "", ""),
        ),
    ],
)
def test_a_tool_has_its_ticket_by_a_key_or_from_a_cache(
    changed: dict[str, str], login: tuple[str, str, str]
) -> None:
    pytest.importorskip("gssapi")
    client = read_client_security({**KERBEROS, **changed})
    assert client.kerberos == login
    assert client.asks_others


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"sasl.kerberos.service.name": ""}, "sasl.mechanism=GSSAPI: GSSAPI needs sasl.kerb"),
        ({"sasl.jaas.config": f"{KERBEROS_MODULE} required;"}, "nobody is asked for a password"),
        ({"sasl.jaas.config": f"{KERBEROS_MODULE} required useKeyTab=true;"}, "needs keyTab and"),
        (
            {
                "sasl.jaas.config": f"{KERBEROS_MODULE} required useTicketCache=true "
                'ticketCache="/x";'
            },
            "KRB5CCNAME",
        ),
        ({"sasl.jaas.config": f"{SCRAM_MODULE} required username=a;"}, "GSSAPI takes"),
    ],
)
def test_a_tool_that_gets_no_ticket_is_refused(changed: dict[str, str], said: str) -> None:
    pytest.importorskip("gssapi")
    with pytest.raises(KafkaError, match=said.replace(".", r"\.")):
        read_client_security({**KERBEROS, **changed})
