"""Every HTTP server with TLS and users: probes answer everybody, the rest only users."""

import base64
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest

from common.http.security import VARIABLE
from millstream.launch import program_environment
from millstream.processes.settings_files import properties_text, write_private
from millstream.testing import LocalBroker
from millstream.testing.certificates import CertificateAuthority
from millstream.testing.local_program import (
    LocalConnect,
    LocalProgram,
    LocalRegistry,
    LocalRestProxy,
)
from tests.lib.pipeline_processes import Pipeline

pytestmark = pytest.mark.interop

USER, PASSWORD = "anna", 'pass:"word" ü'


class Secured(NamedTuple):
    """Files that secure servers and clients of HTTP."""

    http: Path
    registry_client: Path
    ca: Path


class Server(NamedTuple):
    """One server: where it is, and pages of it."""

    url: str
    probe: str
    page: str
    log: Callable[[], str]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Secured:
    folder = tmp_path_factory.mktemp("http")
    authority = CertificateAuthority(folder)
    write_private(folder / "users.properties", properties_text({USER: PASSWORD}))
    trust = {"ssl.truststore.location": str(authority.certificate)}
    info = {"basic.auth.user.info": f"{USER}:{PASSWORD}"}
    http = {
        "ssl.keystore.location": str(authority.issue("server").keystore),
        **trust,
        "authentication.method": "BASIC",
        "authentication.users.file": str(folder / "users.properties"),
        **info,
    }
    client = {
        **{f"schema.registry.{name}": value for name, value in trust.items()},
        "basic.auth.credentials.source": "USER_INFO",
        **info,
    }
    files = Secured(folder / "http.properties", folder / "client.properties", folder / "ca.pem")
    write_private(files.http, properties_text(http))
    write_private(files.registry_client, properties_text(client))
    return files


@pytest.fixture(scope="module")
def servers(
    secured: Secured, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Server]]:
    """A broker, a registry, a REST proxy, a worker and two services that talk to each other."""
    file = str(secured.registry_client)
    variables = {VARIABLE: str(secured.http)}
    with ExitStack() as running:
        broker = running.enter_context(LocalBroker(**{"http.config": str(secured.http)}))
        where = broker.bootstrap_servers
        registry = running.enter_context(_with(variables, LocalRegistry(where)))
        proxy = LocalRestProxy(
            where, registry.url, {"listeners": "https://127.0.0.1:0"}, command_config=file
        )
        running.enter_context(_with(variables, proxy))
        worker = running.enter_context(LocalConnect(where, settings=_of_worker(secured)))
        folder = tmp_path_factory.mktemp("services")
        patch = running.enter_context(pytest.MonkeyPatch.context())
        patch.setenv(VARIABLE, str(secured.http))
        patch.setenv("MILLSTREAM_COMMAND_CONFIG", file)
        assert program_environment()[VARIABLE] == str(secured.http)
        services = running.enter_context(Pipeline(where, folder))
        services.start("search", arguments=("--index", str(folder / "orders.sqlite")))
        services.start("orders", arguments=("--search-url", services.urls["search"]))
        urls = services.urls
        logs = {name: partial(services.log, name) for name in ("search", "orders")}
        yield {
            "broker": Server(broker.http_url, "/health/live", "/metrics", broker.log),
            "registry": Server(registry.url, "/", "/subjects", registry.log_tail),
            "proxy": Server(proxy.url, "/health/live", "/topics", proxy.log_tail),
            "connect": Server(worker.url, "/health", "/connectors", worker.log_tail),
            "search": Server(urls["search"], "/health/live", "/metrics", logs["search"]),
            "orders": Server(urls["orders"], "/health/ready", "/v1/orders", logs["orders"]),
        }


def _with(variables: Mapping[str, str], program: LocalProgram) -> LocalProgram:
    program._own_environment |= variables
    return program


def _of_worker(secured: Secured) -> dict[str, str]:
    keystore = secured.ca.parent / "server.pem"
    return {
        "listeners": "https://127.0.0.1:0",
        "listeners.https.ssl.keystore.location": str(keystore),
        "rest.basic.auth.credentials": f"{USER}:{PASSWORD}",
    }


def status_of(secured: Secured, url: str, user: str = "", password: str = "") -> int:
    context = ssl.create_default_context(cafile=str(secured.ca))
    request = Request(url)
    if user:
        pair = base64.b64encode(f"{user}:{password}".encode()).decode()
        request.add_header("Authorization", f"Basic {pair}")
    try:
        with urlopen(request, context=context, timeout=20) as answer:
            return int(answer.status)
    except HTTPError as error:
        with error:
            return error.code


NAMES = ("broker", "registry", "proxy", "connect", "search", "orders")


@pytest.mark.parametrize("name", NAMES)
def test_a_user_is_let_in_and_nobody_else(
    servers: dict[str, Server], secured: Secured, name: str
) -> None:
    server = servers[name]
    page = server.url + server.page
    assert status_of(secured, page, USER, PASSWORD) == 200
    assert status_of(secured, page) == 401
    assert status_of(secured, page, USER, "wrong") == 401
    assert status_of(secured, page, "ben", PASSWORD) == 401
    assert status_of(secured, f"{server.url}/no/such/page") == 401


@pytest.mark.parametrize("name", [name for name in NAMES if name != "registry"])
def test_probes_answer_everybody(servers: dict[str, Server], secured: Secured, name: str) -> None:
    server = servers[name]
    assert status_of(secured, server.url + server.probe) == 200


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_served_in_plain_text(servers: dict[str, Server], name: str) -> None:
    url = servers[name].url
    assert url.startswith("https://")
    with pytest.raises((URLError, OSError)):
        urlopen(url.replace("https", "http") + "/", timeout=5)


@pytest.mark.parametrize("name", NAMES)
def test_no_password_is_in_what_a_server_shows(
    servers: dict[str, Server], secured: Secured, name: str
) -> None:
    server = servers[name]
    pair = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    for path in (server.page, "/metrics", "/"):
        assert status_of(secured, server.url + path, USER, "wrong-secret") == 401
    shown = server.log()
    assert shown or name == "proxy"  # It logs nothing while all is well.
    for secret in (PASSWORD, pair, "wrong-secret"):
        assert secret not in shown
