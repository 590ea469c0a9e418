"""The table of served APIs: every row makes the handler of its own API."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from inspect import signature
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from broker.config.broker_config import BrokerConfig
from broker.config.security_config import SecurityConfig
from broker.log.log_directories import LogDirectories
from broker.server.apis import APIS, make_handler
from broker.server.broker import Broker
from broker.server.clock import SystemClock, system_random
from broker.server.login.node_tls import NodeTls
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import request_class
from common.kafka.protocol.message import Message


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A broker whose surroundings are not there: nothing runs until it is asked to."""
    surroundings: Any = SimpleNamespace(
        ask=None, audit=None, tls=NodeTls(SecurityConfig(), lambda: 0.0)
    )
    directories: Any = LogDirectories.__new__(LogDirectories)
    loop = asyncio.new_event_loop()
    yield Broker(
        BrokerConfig.from_settings({"node.id": "1"}),
        clock=SystemClock(),
        steady_clock=SystemClock(),
        random_source=system_random(),
        log_directories=directories,
        quorum=surroundings,
        loop=loop,
    )
    loop.close()


@pytest.mark.parametrize("api_key", sorted(APIS), ids=lambda key: ApiKey(key).name)
def test_a_row_makes_the_handler_of_its_own_api(api_key: ApiKey, broker: Broker) -> None:
    assert make_handler(broker, api_key) is not None
    kind = signature(APIS[api_key](broker)).parameters["request"].annotation
    if kind not in {Any, Message}:
        assert request_class(api_key) in (get_args(kind) or (kind,))


def test_an_api_that_is_not_served_has_no_handler(broker: Broker) -> None:
    assert make_handler(broker, ApiKey.VOTE) is None
    assert make_handler(broker, 12_345) is None


def test_a_handler_is_imported_at_the_first_request_of_its_api() -> None:
    program = (
        "import sys, broker.server.node\n"
        "print([name for name in sys.modules if name.startswith('broker.server.handlers')])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert result.stdout.strip() == b"[]"
