"""Every server of the project when its descriptors run out: none takes the last ones for clients.

Kafka's listeners are in `test_greedy_clients`; these are the controller's and those of HTTP.
"""

import os
import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import count
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from common.http.accepting import MAX_RESERVED_DESCRIPTORS
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.api_versions import ApiVersionsRequest
from millstream.testing import LocalBroker
from tests.fuzz.in_process import combined_settings
from tests.lib.connect_worker import ConnectWorker, eventually
from tests.lib.mirror_process import MirrorProcess, properties_file
from tests.lib.pipeline_processes import Pipeline
from tests.lib.raw_kafka import RawConnection
from tests.lib.streams_processes import Streams
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

SPARE = 30
CLIENTS = 75  # no more than a listener has waiting, or they are not even connected
REQUEST = b"GET /health/live HTTP/1.1\r\nHost: here\r\n\r\n"


class Server(NamedTuple):
    """One listening socket of a program."""

    pid: int
    port: int
    log: Callable[[], str]

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), 30)

    def pauses(self) -> int:
        return self.log().count(
            f"accepting pauses: the last file descriptors are for files; port={self.port}"
        )

    def open_descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))


Servers = dict[str, Server]


@pytest.fixture(scope="module")
def node() -> Iterator[Servers]:
    """A node that has nothing to do, and opens no files by itself."""
    settings = combined_settings()
    controller_port = int(settings["controller.quorum.voters"].rpartition(":")[2])
    with LocalBroker(**settings) as broker:
        yield {
            "controller": Server(broker.pid, controller_port, broker.log),
            "node": Server(broker.pid, port_of(broker.http_url), broker.log),
        }


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    folder = tmp_path_factory.mktemp("programs")
    with ExitStack() as stack:
        where = stack.enter_context(LocalBroker()).bootstrap_servers
        told = {"bootstrap.servers": where, "offset.storage.file.filename": f"{folder}/offsets"}
        worker = stack.enter_context(ConnectWorker(folder, told))
        flow = {"a->b.enabled": "true", "topics": "none", "emit.heartbeats.enabled": "false"}
        properties = properties_file(folder, {"a": where, "b": where}, flow)
        mirror = stack.enter_context(MirrorProcess(properties))
        eventually(lambda: all_tasks_run(mirror))  # and have opened what they need
        pipeline = stack.enter_context(Pipeline(where, folder))
        pipeline.start("fraud")
        streams = Streams(pipeline, folder)
        streams.begin("streams")
        streams.wait_ready("streams")
        assert worker.process is not None
        assert mirror.process is not None
        yield {
            "connect": Server(worker.process.pid, port_of(f"//{worker.worker_id}"), worker.log),
            "mirror": Server(mirror.process.pid, port_of(mirror.url), mirror.log),
            "registry": of_pipeline(pipeline, "registry"),
            "fraud": of_pipeline(pipeline, "fraud"),
            "streams": of_pipeline(pipeline, "streams"),
        }


def all_tasks_run(mirror: MirrorProcess) -> bool:
    (flow,) = mirror.get("/flows")
    tasks = [each["tasks"] for each in flow["connectors"].values()]
    states = [state for each in tasks for state in each.values()]
    return len(tasks) == 3 and states != [] and set(states) == {"RUNNING"}


def of_pipeline(pipeline: Pipeline, name: str) -> Server:
    pid, port = pipeline.programs[name].pid, port_of(pipeline.urls[name])
    return Server(pid, port, lambda: pipeline.log(name))


def port_of(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None, url
    return port


def reserved(limit: int) -> int:
    return min(MAX_RESERVED_DESCRIPTORS, limit // 8)


@contextmanager
def short_of_descriptors(server: Server) -> Iterator[int]:
    """Leave a program so few that clients get `SPARE`; gives its limit."""
    usual = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    most = server.open_descriptors() + SPARE
    limit = next(each for each in count(most) if each - reserved(each) >= most)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (limit, usual[1]))
    try:
        yield limit
    finally:
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, usual)


@contextmanager
def too_many_clients(server: Server, limit: int) -> Iterator[None]:
    with ExitStack() as stack:
        for _ in range(CLIENTS):
            stack.enter_context(closing(server.connect()))
        until(lambda: server.pauses() > 0)
        assert server.open_descriptors() < limit
        yield


def is_answered(client: socket.socket, request: bytes = REQUEST) -> bool:
    client.sendall(request)
    return client.recv(12) == b"HTTP/1.1 200"


def check_pages(server: Server) -> None:
    with short_of_descriptors(server) as limit, closing(server.connect()) as before:
        before.sendall(REQUEST[:20])
        with too_many_clients(server, limit):
            assert is_answered(before, REQUEST[20:])
        # A waiting client is served when there are descriptors again, and is not closed meanwhile.
        with closing(server.connect()) as after:
            assert is_answered(after)
    assert server.pauses() == 1
    assert "out of system resource" not in server.log()


@pytest.mark.parametrize("name", ["connect", "mirror", "registry", "fraud", "streams"])
def test_a_programs_server_keeps_the_last_descriptors_and_the_requests_it_has(
    programs: Servers, name: str
) -> None:
    check_pages(programs[name])


def test_a_nodes_pages_keep_the_last_descriptors_and_the_requests_they_have(node: Servers) -> None:
    check_pages(node["node"])


def test_a_controllers_listener_keeps_the_last_descriptors_and_the_peers_it_has(
    node: Servers,
) -> None:
    server = node["controller"]
    address = f"127.0.0.1:{server.port}"
    with short_of_descriptors(server) as limit, RawConnection(address, 30) as before:
        with too_many_clients(server, limit):
            before.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
        with RawConnection(address, 30) as after:
            after.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
    assert server.pauses() == 1
