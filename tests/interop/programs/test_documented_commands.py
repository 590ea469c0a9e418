"""What the pages tell a user to type is typed: from an installed wheel, in an empty folder.

Every command of the pages is in a walk below, or among those that are not run, with the reason. A
new one is in neither and fails. Addresses in the pages are replaced by those of the walk.
"""

import os
import re
import shutil
import subprocess
import venv
from collections.abc import Iterator
from importlib.metadata import distribution
from itertools import islice
from pathlib import Path

import pytest

from millstream.cli.commands import TOOLS
from millstream.processes.cluster_layout import free_ports
from millstream.testing import LocalBroker
from tests.interop.programs.test_installed import ROOT, Installation, link, link_requirements
from tests.lib.quick_spark import quick_spark

pytestmark = [pytest.mark.interop, pytest.mark.slow]

PAGES = (
    "README.md",
    "connect/README.md",
    "docs/cluster.md",
    "docs/pipeline.md",
    "docs/tools.md",
    "spark_analytics/README.md",
    "streams/README.md",
)
COMMAND = re.compile(
    r"^(?:    )?((?:make|pip|millstream|sqlite3|echo|export|python|\.venv\S+) .*)$"
)
NOT_RUN = {
    r"make demo.*": "a clone's; tests/millstream runs the demo",
    r"sqlite3 build/demo/shop.sqlite .*": "the demo's database",
    r"pip install \.": "test_the_line_that_installs_is_typed_in_a_clone types it",
    r"millstream up": "takes the ports of everybody; test_installed.py starts it on free ones",
    r"millstream cluster start .*": "the ports are everybody's; a runbook runs it",
    r"millstream load .*": "needs the whole pipeline; tests/millstream runs it",
    r"millstream lab( .*)?": "tests/demo/labs runs them",
    r"millstream (streams|spark-job) --bootstrap-servers .*": "needs a registry; its help is run",
    r"\.venv/bin/python -m tests\.connect\..*": "a clone's, minutes long",
    r"export MILLSTREAM_SPARK_CONF=.*": "set for the session of this test",
}
ASKING = "list|status|validate|create|config|restart|stop|offsets|resume|plugins"
RUN_AS_HELP = ("streams", "spark-job", "dashboard")
SESSION = """
import sys
assert not any(name in sys.modules for name in ("common", "spark_analytics"))
{block}
frame = (
    spark.read.format("millstream")
    .option("kafka.bootstrap.servers", "{bootstrap}")
    .option("subscribe", "orders")
    .option("startingOffsets", "earliest")
    .load()
)
assert {{bytes(row.value) for row in frame.collect()}} == {{b"hello"}}, frame.collect()
{source}
assert orders.isStreaming
spark.stop()
"""


def blocks(page: str, language: str) -> list[str]:
    found = re.findall(
        rf"^```{language}\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL
    )
    return [block.strip("\n") for block in found]


def documented(page: str) -> list[str]:
    """Give the commands of a page, one that is continued on the next line as one."""
    text = (ROOT / page).read_text().replace("\\\n", " ")
    lines = [COMMAND.match(line) for line in text.splitlines()]
    return [re.sub(r"\s+#.*", "", " ".join(line[1].split())) for line in lines if line]


class Walk:
    """Types commands in one folder, against one broker and one worker of Connect."""

    def __init__(self, installation: Installation, folder: Path, broker: LocalBroker) -> None:
        self.folder = folder
        self.typed: list[str] = []
        self._installation = installation
        self._broker = broker
        (self._port,) = islice(free_ports(), 1)

    def type(self, script: str, *commands: str, **variables: str) -> str:
        """Run a script of bash that holds these commands of a page; gives what it printed."""
        self.typed += commands
        script = script.replace("localhost:9092", self._broker.bootstrap_servers)
        script = script.replace("localhost:8083", f"127.0.0.1:{self._port}")
        asking = rf"\1 --url http://127.0.0.1:{self._port}"
        script = re.sub(rf"(millstream connect (?:{ASKING}))", asking, script)
        script = script.replace(
            "\nfile.allowed", f"\nlisteners=http://127.0.0.1:{self._port}\nfile.allowed"
        )
        (self.folder / "typed.sh").write_text(script)
        done = self._installation.run(
            "bash", "-euo", "pipefail", "typed.sh", folder=self.folder, **variables
        )
        assert done.returncode == 0, (script, done.stdout, done.stderr)
        return done.stdout

    def in_order(self, page: str, *starts: str) -> str:
        """Give the commands of a page that begin so, and count them as typed."""
        found = [line for line in documented(page) if line.startswith(starts)]
        self.typed += found
        return "\n".join(found)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("documented")


@pytest.fixture(scope="module")
def bare(folder: Path) -> Installation:
    """The distribution without extras, until the first test asks for these."""
    return Installation(folder)


@pytest.fixture(scope="module")
def installation(bare: Installation, folder: Path) -> Installation:
    (site_packages,) = folder.glob("environment/lib/python3*/site-packages")
    for extra in ("spark", "streams"):
        link_requirements("millstream", site_packages, extra=extra)
    return bare


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    with LocalBroker() as started:
        yield started


@pytest.fixture
def walk(installation: Installation, broker: LocalBroker, tmp_path: Path) -> Walk:
    return Walk(installation, tmp_path, broker)


def clone(folder: Path) -> None:
    """Copy what git has of this checkout, as it is now, without tests."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", ":!tests"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.split("\0"):
        if name and (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


def test_the_line_that_installs_is_typed_in_a_clone(tmp_path: Path) -> None:
    """In an empty environment, with what it requires beside: nothing is fetched."""
    (line,) = {line for line in documented("README.md") if line.startswith("pip install")}
    clone(tmp_path / "clone")
    venv.create(tmp_path / "empty", symlinks=True, with_pip=True)
    (site_packages,) = tmp_path.glob("empty/lib/python3*/site-packages")
    link_requirements("millstream", site_packages)
    link_requirements("hatchling", site_packages)
    link(distribution("hatchling"), site_packages)
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    path = os.pathsep.join([str(tmp_path / "empty" / "bin"), kept["PATH"]])
    # The two with "0" mean: builds with the hatchling that is there, not with one from an index,
    # and compiles no file that is not imported.
    kept |= {"PATH": path, "PIP_NO_INDEX": "1"}
    kept |= {"PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_COMPILE": "0"}
    for words, folder in (
        (line.split(), tmp_path / "clone"),
        (["millstream", "--version"], tmp_path),
    ):
        done = subprocess.run(words, cwd=folder, env=kept, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("millstream 0."), done.stdout


# Before the others, which bring the extras.
def test_a_missing_extra_is_named(bare: Installation, tmp_path: Path) -> None:
    for command, extra in (("streams", "streams"), ("spark-job", "spark"), ("dashboard", "spark")):
        refused = bare.run("millstream", command, folder=tmp_path)
        assert refused.returncode == 1
        assert f'pip install "millstream[{extra}]"' in refused.stderr
    program = "from millstream.spark import spark_session; spark_session('x')"
    refused = bare.run("python", "-c", program, folder=tmp_path)
    said = 'ImportError: millstream.spark needs pyspark: pip install "millstream[spark]"'
    assert said in refused.stderr


CONNECT_OUT = (
    '{"name": "out", "connector.class": "FileStreamSink", "file": "out.txt", "topics": "lines"}'
)
WAIT = "for i in $(seq 100); do {what} && break; sleep 0.2; done"


def test_the_page_of_connect(walk: Walk) -> None:
    page = "connect/README.md"
    text = (ROOT / page).read_text()
    first = re.search(r"^    cat > worker.properties <<END\n(?:    .*\n)+", text, re.MULTILINE)
    assert first is not None
    setting_up = re.sub("^    ", "", first[0], flags=re.MULTILINE)
    started, asked = setting_up.split("millstream connect status in", 1)
    walk.in_order(page, "echo ", "millstream connect")
    is_up = WAIT.format(what="millstream connect status in")
    rest = "\n".join(
        line
        for line in documented(page)
        if line.startswith("millstream connect ") and line.split()[2] not in {"start", "status"}
    )
    out = walk.type(
        f"trap 'kill $(jobs -p); wait' EXIT\n{started}\n{is_up}\nmillstream connect status in "
        f"{asked}\necho '{CONNECT_OUT}' > out.json\n{rest}\n"
        + WAIT.format(what="grep -q hello out.txt 2>/dev/null")
        + "\ncat out.txt\n"
    )
    assert "hello" in out.splitlines()


def test_the_page_of_the_session(walk: Walk, broker: LocalBroker) -> None:
    page = "spark_analytics/README.md"
    # No other walk writes to this topic: the page of Connect has JSON in its own.
    producer = "millstream console-producer --bootstrap-server localhost:9092 --topic orders"
    walk.type(f"echo hello | {producer}")
    session, source = blocks(page, "python")
    source = source.replace("127.0.0.1:9092", broker.bootstrap_servers)
    program = SESSION.format(block=session, source=source, bootstrap=broker.bootstrap_servers)
    (walk.folder / "theirs.py").write_text(program)
    text = (ROOT / page).read_text()
    (variable,) = re.findall(r"^export (MILLSTREAM_SPARK_CONF='.*')$", text, re.MULTILINE)
    walk.type(f"{variable} python theirs.py", **quick_spark())


def test_the_first_page(walk: Walk, broker: LocalBroker) -> None:
    for number, block in enumerate(blocks("README.md", "python")):
        (walk.folder / f"block{number}.py").write_text(block)
        walk.type(f"python block{number}.py")


def test_the_page_of_the_cluster(walk: Walk, broker: LocalBroker) -> None:
    page = "docs/cluster.md"
    (port, controller) = islice(free_ports(), 2)
    (walk.folder / "server.properties").write_text(
        f"process.roles=broker,controller\nnode.id=1\nlog.dirs=data\n"
        f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n"
        f"controller.quorum.bootstrap.servers=127.0.0.1:{controller}\n"
    )
    formatting = walk.in_order(page, "millstream storage format")
    starting = walk.in_order(page, "millstream broker start")
    asking = walk.in_order(page, "millstream metadata-quorum", "millstream consumer-groups")
    out = walk.type(
        f"{formatting}\n{starting} > started &\ntrap 'kill $(jobs -p); wait' EXIT\n"
        + WAIT.format(what="grep -q ready started")
        + f"\n{asking.replace('localhost:9092', f'127.0.0.1:{port}')}"
    )
    assert "LeaderId:" in out
    assert walk.in_order(page, "millstream connect")  # The page of Connect types them.
    for name in RUN_AS_HELP:
        assert f"usage: millstream {name} " in walk.type(f"millstream {name} --help")


def test_every_tool_of_the_list_is_there(walk: Walk) -> None:
    text = (ROOT / "docs/tools.md").read_text()
    tools = re.findall(r"^\| `([a-z0-9-]+)` \|", text, re.MULTILINE)
    assert sorted(tools) == sorted(TOOLS)
    walk.type("\n".join(f"millstream {tool} --help > {tool}" for tool in tools))
    assert all("examples:" in (walk.folder / tool).read_text() for tool in tools)


@pytest.mark.parametrize("page", PAGES)
def test_no_command_is_left_out(page: str) -> None:
    typed = (
        "millstream connect ",
        "millstream storage ",
        "millstream broker ",
        "millstream dashboard ",
    )
    typed += ("millstream metadata-quorum ", "millstream consumer-groups ", "echo ")
    left = [
        line
        for line in documented(page)
        if not line.startswith(typed) and not any(re.fullmatch(one, line) for one in NOT_RUN)
    ]
    assert left == []


def test_a_package_of_the_users_that_hides_ours_is_told(
    installation: Installation, tmp_path: Path
) -> None:
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "__init__.py").write_text("")
    program = "from millstream.spark import spark_session; spark_session('x')"
    refused: subprocess.CompletedProcess[str] = installation.run(
        "python", "-c", program, folder=tmp_path
    )
    assert "needs its own package 'common'" in refused.stderr
