"""The distribution installed in an environment of its own, used by a project that is not ours.

The environment holds the wheel, its core dependencies and pytest, nothing else; the project has
packages of its own called `broker`, `schemas` and `services`, and everything is done to make ours
and theirs meet: they are in the working directory and on PYTHONPATH.
"""

import json
import os
import select
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from textwrap import dedent

import pytest
from packaging.requirements import Requirement

from tests.lib.rest_calls import RestCalls

pytestmark = [pytest.mark.interop, pytest.mark.slow]

ROOT = Path(__file__).parents[3]
GONE_WITHIN_SECONDS = 20
"""How long a broker may take to notice that its test run is no more; it takes milliseconds."""

THEIRS = """
    import sys

    assert "pytest" in sys.modules, "only the user's tests may import the user's {name}"
    WHOSE = "the user's"
"""

PASSING_TESTS = """
    import broker
    import pytest
    import schemas
    import services
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from millstream.testing import LocalBroker
    import asyncio

    async def produce_and_consume(bootstrap_servers):
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap_servers)
        await producer.start()
        await producer.send_and_wait("fruit", b"apple")
        await producer.stop()
        consumer = AIOKafkaConsumer(
            "fruit",
            bootstrap_servers=bootstrap_servers,
            group_id="eaters",
            auto_offset_reset="earliest",
        )
        await consumer.start()
        record = await consumer.getone()
        await consumer.stop()
        return record.value

    def test_their_packages_are_theirs():
        assert {broker.WHOSE, schemas.WHOSE, services.WHOSE} == {"the user's"}

    def test_the_fixture(kafka_broker):
        assert asyncio.run(produce_and_consume(kafka_broker.bootstrap_servers)) == b"apple"

    def test_a_local_broker():
        with LocalBroker(num_partitions=3) as ours:
            assert asyncio.run(produce_and_consume(ours.bootstrap_servers)) == b"apple"
            assert len(list(ours.data_folder.glob("fruit-*"))) == 3

    def test_what_a_broker_has_for_tests(kafka_broker):
        kafka_broker.snapshot()
        asyncio.run(produce_and_consume(kafka_broker.bootstrap_servers))
        (record,) = kafka_broker.wait_for_records("fruit", 1)
        assert record.value == "apple"
        kafka_broker.clock.advance(days=8)
        assert kafka_broker.records("fruit") == []
        kafka_broker.restore()
        assert kafka_broker.group("eaters").state == "Dead"
"""

FAILING_TEST = """
    def test_that_fails(kafka_broker):
        assert kafka_broker.bootstrap_servers == "somewhere else"
"""

DYING_TEST = """
    import os
    import signal
    from pathlib import Path

    def test_that_dies(kafka_broker):
        Path("broker.pid").write_text(str(kafka_broker.pid))
        {death}
"""

DEATHS = {
    "killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "terminated": "os.kill(os.getpid(), signal.SIGTERM)",
    "exited": "os._exit(0)",
    "killed, broker frozen": "kafka_broker.pause(); os.kill(os.getpid(), signal.SIGKILL)",
}


class Installation:
    """An environment with the distribution in it."""

    def __init__(self, folder: Path) -> None:
        self.wheel = build_wheel(folder / "wheel")
        self._bin = folder / "environment" / "bin"
        venv.create(folder / "environment", symlinks=True)
        # Python compiles what is imported; pip would compile a thousand files that are not.
        options = ("--no-index", "--no-deps", "--no-compile")
        pip("--python", str(self._bin / "python"), "install", *options, self.wheel)
        (site_packages,) = folder.glob("environment/lib/python3*/site-packages")
        link_requirements("millstream", site_packages)
        link_requirements("pytest", site_packages)
        link(distribution("pytest"), site_packages)

    def run(
        self, program: str, *arguments: str, folder: Path, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run one of the environment's programs in a folder; `variables` are more of its own."""
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTEST", "PYTHON", "COV_"))
        }
        path = os.pathsep.join([str(self._bin), environment["PATH"]])
        environment |= {"PYTHONPATH": str(folder), "TMPDIR": str(folder), "PATH": path}
        environment |= variables
        return subprocess.run(
            [program, *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )


def pip(*arguments: object) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def build_wheel(folder: Path) -> Path:
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ROOT)
    (wheel,) = folder.glob("*.whl")
    return wheel


def link_requirements(
    name: str, site_packages: Path, seen: set[str] | None = None, *, extra: str = ""
) -> None:
    """Put what a distribution requires, and what that requires, into another environment."""
    seen = set() if seen is None else seen
    for text in distribution(name).requires or []:
        requirement = Requirement(text)
        is_wanted = requirement.marker is None or requirement.marker.evaluate({"extra": extra})
        if is_wanted and requirement.name not in seen:
            seen.add(requirement.name)
            link(distribution(requirement.name), site_packages)
            for needed in ("", *requirement.extras):
                link_requirements(requirement.name, site_packages, seen, extra=needed)


def link(installed: Distribution, site_packages: Path) -> None:
    for top in {file.parts[0] for file in installed.files or []} - {"..", "__pycache__"}:
        if not (site_packages / top).exists():
            (site_packages / top).symlink_to(str(installed.locate_file(top)))


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return Installation(tmp_path_factory.mktemp("installed"))


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    for name in ("broker", "common", "rest_proxy", "schemas", "services", "stack"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(dedent(THEIRS.format(name=name)))
    return tmp_path


def run_tests(
    installation: Installation, project: Path, tests: str
) -> subprocess.CompletedProcess[str]:
    (project / "test_theirs.py").write_text(dedent(tests))
    arguments = ("-m", "pytest", "-p", "no:cacheprovider", "-rA", "test_theirs.py")
    return installation.run("python", *arguments, folder=project)


def test_the_wheel_adds_one_package(installation: Installation) -> None:
    with zipfile.ZipFile(installation.wheel) as wheel:
        names = wheel.namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"millstream"}
    assert "millstream/programs/broker/__main__.py" in names


def test_the_command_runs(installation: Installation, project: Path) -> None:
    shown = installation.run("millstream", "--version", folder=project)
    assert shown.stdout.startswith("millstream 0."), shown.stderr
    refused = installation.run(
        "millstream", "broker", "start", "--override", "num.partition=1", folder=project
    )
    assert refused.returncode == 2
    assert "did you mean 'num.partitions'" in refused.stderr


@pytest.mark.parametrize("command", ["demo", "load", "lab"])
def test_what_the_command_does_itself_needs_no_program(
    installation: Installation, project: Path, command: str
) -> None:
    shown = installation.run("millstream", command, "--help", folder=project)
    assert shown.returncode == 0, shown.stderr
    assert f"usage: millstream {command}" in shown.stdout


def test_a_stack_is_up_beside_packages_of_the_same_names(
    installation: Installation, project: Path
) -> None:
    home = project / "home"
    (project / "seeds.yaml").write_text("- {name: fruit, records: [{value: apple}]}")
    parts = ("--only", "broker,registry,rest-proxy", "--topics", "seeds.yaml")
    arguments = ("up", "--any-port", "--ephemeral", "--json", *parts)
    shown = installation.run("millstream", *arguments, folder=project, MILLSTREAM_HOME=str(home))
    assert shown.returncode == 0, shown.stderr
    try:
        rest = RestCalls(json.loads(shown.stdout)["environment"]["KAFKA_REST_URL"])
        ends = rest.get("/topics/fruit/partitions/0/offsets").body
        assert ends == {"beginning_offset": 0, "end_offset": 1}
    finally:
        installation.run("millstream", "down", folder=project, MILLSTREAM_HOME=str(home))


def test_fixture_and_local_broker_beside_packages_of_the_same_names(
    installation: Installation, project: Path
) -> None:
    done = run_tests(installation, project, PASSING_TESTS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout
    assert not list(project.glob("millstream-broker-*"))


def test_a_failing_test_shows_the_brokers_log(installation: Installation, project: Path) -> None:
    done = run_tests(installation, project, FAILING_TEST)
    assert done.returncode == 1, done.stdout + done.stderr
    _, heading, log = done.stdout.partition("log of kafka_broker")
    assert heading
    assert "millstream.node" in log


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux to await a stranger's end")
@pytest.mark.parametrize("death", DEATHS.values(), ids=DEATHS.keys())
def test_no_broker_outlives_its_test_run(
    installation: Installation, project: Path, death: str
) -> None:
    done = run_tests(installation, project, DYING_TEST.format(death=death))
    pid = int((project / "broker.pid").read_text())
    assert " passed" not in done.stdout
    assert has_ended(pid)


def has_ended(pid: int) -> bool:
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], GONE_WITHIN_SECONDS)[0])
    finally:
        os.close(process)
