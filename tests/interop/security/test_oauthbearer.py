"""Tokens of OAUTHBEARER over time: wrong ones, renewed ones, and a node's own.

`test_every_mechanism` has each client with a right and a wrong token.
"""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer
from cryptography.hazmat.primitives.asymmetric import rsa

from common.credentials.access import kafka_access
from common.credentials.jaas import ALLOWED_URLS, OAUTHBEARER_MODULE, TOKEN_URL
from millstream.processes.settings_files import login_text, properties_text
from millstream.testing import LocalBroker
from tests.lib.issuer import Issuer, token
from tests.lib.waiting import until

pytestmark = pytest.mark.interop
FORGED = rsa.generate_private_key(65537, 2048)
SESSION_MS = 1_500


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    folder = tmp_path_factory.mktemp("issuer")
    own = folder / "broker.jwt"
    own.write_text(token("broker", lifetime_seconds=3_600))
    settings = Issuer(folder, {}).broker_settings()
    settings[ALLOWED_URLS] += f",{own.as_uri()}"
    with LocalBroker(
        security="sasl_plaintext",
        **{
            **settings,
            TOKEN_URL: own.as_uri(),
            "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            "connections.max.reauth.ms": SESSION_MS,
        },
    ) as made:
        yield made


WRONG: list[dict[str, Any]] = [
    {"key": FORGED},
    {"aud": "other"},
    {"lifetime_seconds": -3_600},
    {"nbf": time.time() + 3_600},
]


def settings_of(broker: LocalBroker, **claims: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda config: (token("alice", **claims), time.time() + 60),
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


def test_aiokafka_as_programs_have_it_outlives_its_sessions(
    broker: LocalBroker, tmp_path: Path
) -> None:
    """The broker ends each connection with its session; the next one has a new token."""
    held = tmp_path / "token"
    file = tmp_path / "client.properties"
    own = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": login_text(OAUTHBEARER_MODULE),
        TOKEN_URL: held.as_uri(),
    }
    file.write_text(properties_text(own))
    held.write_text(token("alice"))
    access = kafka_access(broker.bootstrap_servers, str(file))

    async def run() -> list[int]:
        offsets = []
        begun = time.monotonic()
        async with AIOKafkaProducer(**access.aiokafka(), enable_idempotence=True) as producer:
            while time.monotonic() - begun < 3 * SESSION_MS / 1_000:
                held.write_text(token("alice", lifetime_seconds=3))
                offsets.append((await producer.send_and_wait("a", b"x")).offset)
                await asyncio.sleep(0.05)
        return offsets

    offsets = asyncio.run(run())
    assert offsets == list(range(len(offsets)))


@pytest.mark.parametrize("claims", WRONG, ids=["key", "audience", "expired", "early"])
def test_confluent_kafka_with_a_wrong_token(broker: LocalBroker, claims: dict[str, Any]) -> None:
    errors: list[str] = []
    settings = settings_of(broker, **claims)
    producer = Producer({**settings, "error_cb": lambda error: errors.append(error.str())})

    def is_refused() -> bool:
        producer.poll(0.1)
        return any("Invalid token" in error for error in errors)

    until(is_refused, shown=lambda: errors)


def test_a_node_authenticates_with_a_token(broker: LocalBroker) -> None:
    """It asks itself, as a coordinator, whether a batch belongs to a transaction."""
    before = len(broker.log())
    producer = Producer({**settings_of(broker), "transactional.id": "t"})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("t", b"x")
    producer.commit_transaction(10)
    assert "authentication failed" not in broker.log()[before:]
