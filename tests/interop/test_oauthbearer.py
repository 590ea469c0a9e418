"""Stock clients with OAuth tokens, right and wrong, and a token that is renewed on the way."""

import asyncio
import gc
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import kafka
import kafka.errors
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaError
from confluent_kafka import Producer
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from kafka.net.sasl import oauth

from millrace.testing import LocalBroker
from tests.lib.apache_kafka import TOOLS, Tool, kafka_libs, run_tools
from tests.lib.waiting import until

pytestmark = pytest.mark.interop
KEY, FORGED = (rsa.generate_private_key(65537, 2048) for _ in range(2))
SESSION_MS = 1_500
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    folder = tmp_path_factory.mktemp("issuer")
    file, own = folder / "keys.json", folder / "broker.jwt"
    own.write_text(token(lifetime_seconds=3_600, sub="broker"))
    described = json.loads(RSAAlgorithm.to_jwk(KEY.public_key()))
    file.write_text(json.dumps({"keys": [{**described, "kid": "one", "use": "sig"}]}))
    with LocalBroker(
        security="sasl_plaintext",
        sasl_enabled_mechanisms="PLAIN,OAUTHBEARER",
        sasl_oauthbearer_jwks_endpoint_url=file.as_uri(),
        org_apache_kafka_sasl_oauthbearer_allowed_urls=f"{file.as_uri()},{own.as_uri()}",
        sasl_oauthbearer_token_endpoint_url=own.as_uri(),
        sasl_mechanism_inter_broker_protocol="OAUTHBEARER",
        sasl_oauthbearer_expected_audience="kafka",
        connections_max_reauth_ms=SESSION_MS,
    ) as made:
        yield made


def token(key: Any = KEY, lifetime_seconds: int = 60, **claims: Any) -> str:
    now = int(time.time())
    content = {"sub": "alice", "iat": now, "exp": now + lifetime_seconds, "aud": "kafka", **claims}
    return jwt.encode(content, key, algorithm="RS256", headers={"kid": "one"})


WRONG = [{"key": FORGED}, {"aud": "other"}, {"lifetime_seconds": -3_600}]


def settings_of(broker: LocalBroker, **claims: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda config: (token(**claims), time.time() + 60),
        "log_level": 0,
    }


def test_confluent_kafka_renews_its_session(broker: LocalBroker) -> None:
    producer = Producer(settings_of(broker))
    failures: list[Any] = []
    begun = time.monotonic()
    while time.monotonic() - begun < 3 * SESSION_MS / 1_000:
        producer.produce("c", b"x", on_delivery=lambda error, _: failures.append(error))
        producer.poll(0.05)
    producer.flush(10)
    assert failures
    assert set(failures) == {None}


@pytest.mark.parametrize("claims", WRONG, ids=["key", "audience", "time"])
def test_confluent_kafka_with_a_wrong_token(broker: LocalBroker, claims: dict[str, Any]) -> None:
    errors: list[str] = []
    settings = settings_of(broker, **claims)
    producer = Producer({**settings, "error_cb": lambda error: errors.append(error.str())})

    def is_refused() -> bool:
        producer.poll(0.1)
        return any("Invalid token" in error for error in errors)

    until(is_refused, shown=lambda: errors)


class Tokens(AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, **claims: Any) -> None:
        self._claims = claims

    async def token(self) -> str:
        return token(**self._claims)


async def aiokafka_sends(broker: LocalBroker, **claims: Any) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=broker.bootstrap_servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=Tokens(**claims),
    )
    try:
        await producer.start()
        await producer.send_and_wait("a", b"x")
    finally:
        await producer.stop()


def test_aiokafka(broker: LocalBroker) -> None:
    asyncio.run(aiokafka_sends(broker))
    with pytest.raises(KafkaError):
        asyncio.run(aiokafka_sends(broker, key=FORGED))


def kafka_python(broker: LocalBroker, **claims: Any) -> Any:
    class Provider(oauth.AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return token(**claims)

    return kafka.KafkaProducer(
        bootstrap_servers=broker.bootstrap_servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=Provider(),
        bootstrap_timeout_ms=5_000,
    )


# A producer of kafka-python that cannot authenticate leaves a pair of sockets open.
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_kafka_python(broker: LocalBroker) -> None:
    with kafka_python(broker) as producer:
        assert producer.send("k", b"x").get(10).offset == 0
    with pytest.raises(kafka.errors.KafkaError):
        kafka_python(broker, key=FORGED)
    gc.collect()


def test_a_node_authenticates_with_a_token(broker: LocalBroker) -> None:
    """It asks itself, as a coordinator, whether a batch belongs to a transaction."""
    before = len(broker.log())
    producer = Producer({**settings_of(broker), "transactional.id": "t"})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("t", b"x")
    producer.commit_transaction(10)
    assert "authentication failed" not in broker.log()[before:]


def test_java_and_our_tools_with_a_token_in_a_file(broker: LocalBroker, tmp_path: Path) -> None:
    tools, urls, ours = [], [], []
    for name, content in (("good", token()), ("bad", token(FORGED))):
        (tmp_path / f"{name}.jwt").write_text(content)
        url = (tmp_path / f"{name}.jwt").as_uri()
        urls.append(url)
        file = tmp_path / f"{name}.properties"
        handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
        file.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
            f"sasl.jaas.config={MODULE} required;\n"
            f"sasl.login.callback.handler.class={handler}\n"
            f"sasl.oauthbearer.token.endpoint.url={url}\n"
        )
        where = ("--bootstrap-server", broker.bootstrap_servers, "--command-config", str(file))
        tools.append(Tool(f"{TOOLS}.TopicCommand", (*where, "--create", "--topic", f"by-{name}")))
        command = (sys.executable, "-m", "millrace", "topics", *where, "--list")
        ours.append(subprocess.run(command, capture_output=True, text=True, check=False))
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={','.join(urls)}"
    good, bad = run_tools(kafka_libs(), tools, allowed)
    assert good.status == 0, good
    assert bad.status != 0
    assert "invalid" in (bad.output + bad.errors).lower()
    assert ours[0].returncode == 0, ours[0]
    assert ours[1].returncode != 0
    assert "Invalid token" in ours[1].stdout + ours[1].stderr
