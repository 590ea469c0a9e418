"""The table of served APIs: every handler is given the parts it asks for, in their order."""

import inspect
import subprocess
import sys
from typing import Any, get_type_hints

import pytest

from broker.protocol.api_keys import ApiKey
from broker.server.apis import APIS, SERVED_APIS, handler_class, make_handler


class Names:
    """Stands for a broker: each of its parts is its own name."""

    def __getattr__(self, name: str) -> str:
        return name


@pytest.mark.parametrize("api_key", sorted(APIS), ids=lambda key: ApiKey(key).name)
def test_a_handler_is_given_what_its_parameters_name(api_key: ApiKey) -> None:
    names: Any = Names()
    module, parts = APIS[api_key]
    given = ["served_apis" if part is SERVED_APIS else part for part in parts(names)]
    handler = handler_class(module)
    wanted = [] if handler.__init__ is object.__init__ else inspect.signature(handler).parameters
    assert given == list(wanted)


def test_a_name_means_the_same_part_to_every_handler() -> None:
    kinds: dict[str, Any] = {}
    for module, _ in APIS.values():
        handler = handler_class(module)
        if handler.__init__ is not object.__init__:
            for name, kind in get_type_hints(handler.__init__).items():
                assert kinds.setdefault(name, kind) == kind, (module, name)


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
