"""Every import contract is seen to fail on a planted breach."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROGRAMS = (
    "broker",
    "services",
    "schemas",
    "pages",
    "millrace",
    "streams",
    "transactions",
    "connect",
    "spark_analytics",
)

BREACHES = {
    "The broker's layers": ("broker/protocol/framing.py", "import broker.log.storage"),
    "The broker's core does no IO": ("broker/coordinator/group/shard.py", "import asyncio"),
    "A partition's log": ("broker/log/read.py", "import broker.log.partition_log"),
    "The rooms of the broker's shell": (
        "broker/server/storage/mover.py",
        "import broker.server.broker",
    ),
    "No files of the broker's shell import each other in a circle": (
        "broker/server/network/buffers.py",
        "import broker.server.network.connection",
    ),
    "The services' rules are pure": ("services/orders/domain.py", "import aiohttp"),
    "Connect's converters and transformations": (
        "connect/converters/json_text.py",
        "import asyncio",
    ),
    "What the mirror decides is pure": ("connect/mirror/flow.py", "import confluent_kafka"),
    "What a connector's author imports": ("millrace/connect/plugins.py", "import connect"),
    "What the programs' pages share": ("pages/front.py", "import schemas.loader"),
    "Transactions know none": ("transactions/rules.py", "import services.common.clock"),
    "The programs never import each other": (
        "services/orders/settings.py",
        "import broker.errors",
    ),
}


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def copied_tree(tmp_path: Path) -> Path:
    for program in PROGRAMS:
        shutil.copytree(
            ROOT / program, tmp_path / program, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("contract", BREACHES)
def test_planted_breach_is_found(contract: str, copied_tree: Path) -> None:
    name, line = BREACHES[contract]
    path = copied_tree / name
    path.write_text(f"{path.read_text()}\n{line}\n")

    result = lint(copied_tree)

    assert result.returncode != 0, result.stdout
    broken = [row for row in result.stdout.splitlines() if "BROKEN" in row]
    assert any(contract in row for row in broken), result.stdout


@pytest.mark.slow
def test_an_unlisted_module_of_the_broker_is_found(copied_tree: Path) -> None:
    (copied_tree / "broker" / "stray.py").write_text('"""A module no layer knows."""\n')

    result = lint(copied_tree)

    assert result.returncode != 0, result.stdout
    assert "stray" in result.stdout
