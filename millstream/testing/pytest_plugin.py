"""The pytest fixtures: brokers and other servers for tests.

`kafka_broker` is a clean broker for each test: one process for all tests of a run (of each worker,
with pytest-xdist), which is brought back to its first state, on a new port, in a few milliseconds.
`kafka_cluster` is a new cluster. `schema_registry`, `rest_proxy` and `connect_worker` use the
test's `kafka_broker`; `kafka_stack` starts all of these servers. `session_kafka_broker`,
`session_kafka_cluster` and `session_kafka_stack` are started once for all tests, which share their
topics. Those with `async_` before their names have the same calls for `await`, with any plugin that
runs coroutines.

`--kafka=apache` runs the tests that use `kafka_broker` against Apache Kafka (`apache_kafka`), and
skips what only Millstream has. If a test fails, pytest shows the logs of its servers. The plugin is
active when the distribution is installed; no import is needed.
"""

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from millstream.testing.apache_kafka import ApacheBroker, OnlyMillstreamError, kafka_libraries
from millstream.testing.asynchronous import Awaitable
from millstream.testing.clean_broker import CleanBroker
from millstream.testing.local_broker import LocalBroker
from millstream.testing.local_cluster import LocalCluster
from millstream.testing.local_program import (
    LocalConnect,
    LocalProgram,
    LocalRegistry,
    LocalRestProxy,
)
from millstream.testing.local_stack import LocalStack

APACHE, MILLSTREAM = "apache", "millstream"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--kafka`."""
    parser.getgroup("kafka").addoption(
        "--kafka",
        choices=(MILLSTREAM, APACHE),
        default=MILLSTREAM,
        help="which Kafka `kafka_broker` is; for apache, MILLSTREAM_KAFKA_LIBS has its jars",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Raise UsageError if Apache Kafka is wanted and not there."""
    if config.getoption("--kafka") == APACHE:
        try:
            kafka_libraries()
        except LookupError as error:
            raise pytest.UsageError(f"--kafka=apache: {error}") from None


# --- brokers ---


@pytest.fixture(scope="session")
def _clean_broker() -> Iterator[CleanBroker]:
    """The process behind `kafka_broker`; it starts for the first test that wants one."""
    with CleanBroker() as clean:
        yield clean


@pytest.fixture
def kafka_broker(
    request: pytest.FixtureRequest, _clean_broker: CleanBroker
) -> Iterator[LocalBroker | ApacheBroker]:
    """A clean broker on a port that no test before had; a fault that hit nothing fails the test."""
    if request.config.getoption("--kafka") == APACHE:
        with ApacheBroker() as apache:
            yield apache
        return
    broker = _clean_broker.next()
    yield broker
    _clean_broker.end()


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[LocalCluster]:
    """A real cluster of three nodes, each broker and controller, stopped after the test."""
    _only_millstream(request)
    with LocalCluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def session_kafka_broker(
    request: pytest.FixtureRequest,
) -> Iterator[LocalBroker | ApacheBroker]:
    """A real broker for all tests of the run (of each worker, with pytest-xdist)."""
    is_apache = request.config.getoption("--kafka") == APACHE
    with ApacheBroker() if is_apache else LocalBroker() as broker:
        yield broker


@pytest.fixture(scope="session")
def session_kafka_cluster(request: pytest.FixtureRequest) -> Iterator[LocalCluster]:
    """A real cluster of three nodes for all tests of the run (of each worker)."""
    _only_millstream(request)
    with LocalCluster() as cluster:
        yield cluster


def _only_millstream(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--kafka") == APACHE:
        pytest.skip(f"{request.fixturename} is made of Millstream: --kafka=apache has one broker")


# --- the other servers ---


@pytest.fixture
def schema_registry(kafka_broker: LocalBroker) -> Iterator[LocalRegistry]:
    """A schema registry on the test's `kafka_broker`, which decodes records with its schemas."""
    with LocalRegistry(kafka_broker.bootstrap_servers) as registry:
        kafka_broker.registry_url = registry.url
        yield registry


@pytest.fixture
def rest_proxy(
    kafka_broker: LocalBroker, schema_registry: LocalRegistry
) -> Iterator[LocalRestProxy]:
    """A REST proxy on the test's `kafka_broker` and `schema_registry`."""
    with LocalRestProxy(kafka_broker.bootstrap_servers, schema_registry.url) as proxy:
        yield proxy


@pytest.fixture
def connect_worker(
    kafka_broker: LocalBroker, schema_registry: LocalRegistry
) -> Iterator[LocalConnect]:
    """A Connect worker on the test's `kafka_broker` and `schema_registry`."""
    with LocalConnect(kafka_broker.bootstrap_servers, schema_registry.url) as worker:
        yield worker


@pytest.fixture
def kafka_stack(request: pytest.FixtureRequest) -> Iterator[LocalStack]:
    """A whole stack: a broker, a schema registry, a REST proxy and a Connect worker."""
    _only_millstream(request)
    with LocalStack() as stack:
        yield stack


@pytest.fixture(scope="session")
def session_kafka_stack(request: pytest.FixtureRequest) -> Iterator[LocalStack]:
    """A whole stack for all tests of the run (of each worker)."""
    _only_millstream(request)
    with LocalStack() as stack:
        yield stack


# --- for coroutines ---


@pytest.fixture
def async_kafka_broker(kafka_broker: LocalBroker) -> Any:
    """The test's `kafka_broker`, whose calls are awaited: `await broker.create_topic("orders")`."""
    return Awaitable(kafka_broker)


@pytest.fixture
def async_kafka_cluster(kafka_cluster: LocalCluster) -> Any:
    """The test's `kafka_cluster`, whose calls are awaited."""
    return Awaitable(kafka_cluster)


@pytest.fixture
def async_kafka_stack(kafka_stack: LocalStack) -> Any:
    """The test's `kafka_stack`, whose calls are awaited."""
    return Awaitable(kafka_stack)


# --- reports ---


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """Skip a test that uses what Apache Kafka does not have."""
    try:
        return (yield)
    except OnlyMillstreamError as error:
        pytest.skip(str(error))


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(request: pytest.FixtureRequest) -> Generator[None, Any, Any]:
    """Skip a test whose fixture uses what Apache Kafka does not have."""
    try:
        return (yield)
    except OnlyMillstreamError as error:
        pytest.skip(str(error))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the log of every node and program among a failed test's fixtures to its report."""
    report = yield
    if report.failed:
        for name, value in getattr(item, "funcargs", {}).items():
            report.sections += [
                (f"log of {name}{part}", tail)
                for part, tail in _logs(value.wrapped if isinstance(value, Awaitable) else value)
            ]
    return report


def _logs(value: object) -> list[tuple[str, str]]:
    """Return the logs of a fixture, each with the name of the part."""
    match value:
        case LocalBroker() | ApacheBroker() | LocalProgram():
            return [("", value.log_tail())]
        case LocalStack():
            return [(f", {part}", tail) for part, tail in value.logs().items()]
        case LocalCluster():
            return [(f", node {node_id}", tail) for node_id, tail in value.logs().items()]
        case _:
            return []
