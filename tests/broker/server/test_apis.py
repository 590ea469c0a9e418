"""The table of served APIs: every handler is given the parts it asks for, in their order."""

import asyncio
import inspect
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, get_type_hints

import pytest

from broker.config.broker_config import BrokerConfig
from broker.config.security_config import SecurityConfig
from broker.log.log_directories import LogDirectories
from broker.server.apis import APIS, SERVED_APIS, handler_class, make_handler
from broker.server.broker import Broker
from broker.server.clock import SystemClock, system_random
from broker.server.network.node_tls import NodeTls
from common.kafka.protocol.api_keys import ApiKey


class Names:
    """Stands for a broker: each of its parts is its own name."""

    def __getattr__(self, name: str) -> str:
        return name


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A broker whose surroundings are not there: nothing runs until it is asked to."""
    surroundings: Any = SimpleNamespace(ask=None, tls=NodeTls(SecurityConfig(), lambda: 0.0))
    directories: Any = LogDirectories.__new__(LogDirectories)
    loop = asyncio.new_event_loop()
    yield Broker(
        BrokerConfig.from_settings({"node.id": "1"}),
        clock=SystemClock(),
        random_source=system_random(),
        log_directories=directories,
        quorum=surroundings,
        loop=loop,
    )
    loop.close()


@pytest.mark.parametrize("api_key", sorted(APIS), ids=lambda key: ApiKey(key).name)
def test_a_handler_is_given_what_its_parameters_name(api_key: ApiKey) -> None:
    names: Any = Names()
    module, parts = APIS[api_key]
    given = ["served_apis" if part is SERVED_APIS else part for part in parts(names)]
    handler = handler_class(module)
    wanted = [] if handler.__init__ is object.__init__ else inspect.signature(handler).parameters
    assert given == list(wanted)


def test_a_part_is_of_the_kind_that_its_parameter_says(broker: Broker) -> None:
    for module, parts in APIS.values():
        handler = handler_class(module)
        if handler.__init__ is object.__init__:
            continue
        kinds = get_type_hints(handler.__init__)
        for part, name in zip(parts(broker), inspect.signature(handler).parameters, strict=True):
            # A Protocol is mypy's to check, in `Broker` itself.
            if inspect.isclass(kinds[name]) and not getattr(kinds[name], "_is_protocol", False):
                assert isinstance(part, kinds[name]), (module, name)


def test_an_api_that_is_not_served_has_no_handler() -> None:
    names: Any = Names()
    assert make_handler(names, ApiKey.VOTE) is None
    assert make_handler(names, 12_345) is None


def test_a_handler_is_imported_at_the_first_request_of_its_api() -> None:
    program = (
        "import sys, broker.server.node\n"
        "print([name for name in sys.modules if name.startswith('broker.server.handlers')])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert result.stdout.strip() == b"[]"
