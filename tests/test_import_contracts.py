"""Every import contract is seen to fail on a planted breach.

All breaches are planted in one copy, which is looked through once: each is to be named by its own
contract, so that none is taken for another.

The contract against circles compares the children of a package with each other, and so overlooks
the package's own `__init__.py`, which `from package import module` needs too: a test finds those.
"""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.test_tidy import FOLDERS, ROOT

BREACHES = {
    "The broker's layers": ("broker/records/header.py", "import broker.log.storage"),
    "The broker's core does no IO": ("broker/coordinator/group/shard.py", "import asyncio"),
    "A partition's log": ("broker/log/read.py", "import broker.log.partition_log"),
    "The rooms of the broker's shell": (
        "broker/server/login/logins.py",
        "import broker.server.settings.own_settings",
    ),
    "No files import each other in a circle": (
        "broker/server/network/buffers.py",
        "import broker.server.network.connection",
    ),
    "The services' rules are pure": ("services/orders/domain.py", "import aiohttp"),
    "The registry's rules are pure": ("schemas/registry/domain.py", "import aiohttp"),
    "Who uses aiokafka": ("services/payments/app.py", "import uvloop"),
    "Connect's herder decides": ("connect/herder/effects.py", "import threading"),
    "A topology knows neither Faust": (
        "streams/joins.py",
        "import streams.around_faust.positions",
    ),
    "Connect's converters and transformations": (
        "connect/converters/json_text.py",
        "import asyncio",
    ),
    "The console's records": ("console/records/merging.py", "import asyncio"),
    "The REST proxy's formats and rules": ("rest_proxy/consumers/state.py", "import asyncio"),
    "What the mirror decides is pure": ("mirror/flow.py", "import confluent_kafka"),
    "What a connector's author imports": ("millstream/connect/plugins.py", "import connect"),
    "The rooms of what the programs share": (
        "common/kafka/topics.py",
        "import common.registry.wire",
    ),
    "The rooms of Kafka's clients": (
        "common/kafka/client/blocking.py",
        "import common.kafka.admin.cluster",
    ),
    "The core of Kafka's clients": ("common/kafka/client/exchange.py", "import asyncio"),
    "How far groups are behind": ("lag/monitor.py", "import lag.asking"),
    "What a backup consists of": ("backup/records.py", "import backup.folder"),
    "What an explanation says": ("explain/causes/record.py", "import explain.asking.records"),
    "What users import": ("millstream/testing/topics.py", "import common.kafka.topics"),
    "The broker shares its pages": (
        "broker/server/front_page.py",
        "import common.http.problems",
    ),
    "A program does not import": ("services/fraud/app.py", "import millstream.launch"),
    "Connect and the mirror import only": ("connect/start.py", "import millstream.testing"),
    "The programs never import each other": (
        "services/orders/settings.py",
        "import broker.model",
    ),
}


UNLISTED = "stray"
"""A module of the broker that no layer knows."""


@pytest.fixture(scope="module")
def broken_contracts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Say what is told of each contract that is broken, by its name."""
    folder = tmp_path_factory.mktemp("planted")
    for program in FOLDERS:
        shutil.copytree(
            ROOT / program, folder / program, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(ROOT / "pyproject.toml", folder)
    for name, line in BREACHES.values():
        path = folder / name
        path.write_text(f"{path.read_text()}\n{line}\n")
    (folder / "broker" / f"{UNLISTED}.py").write_text('"""Nobody knows it."""\n')
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert result.returncode != 0, result.stdout
    told = result.stdout.partition("\nBroken contracts\n")[2]
    parts = re.split(r"^(.+)\n-{3,}\n", told, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_every_contract_has_a_breach_of_its_own() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    names = [one["name"] for one in settings["tool"]["importlinter"]["contracts"]]
    found = [[title for title in BREACHES if name.startswith(title)] for name in names]
    assert [name for name, titles in zip(names, found, strict=True) if len(titles) != 1] == []
    assert len(names) == len(BREACHES)


@pytest.mark.slow
@pytest.mark.parametrize("contract", BREACHES)
def test_planted_breach_is_found(contract: str, broken_contracts: dict[str, str]) -> None:
    name, line = BREACHES[contract]
    told = [text for title, text in broken_contracts.items() if title.startswith(contract)]
    assert len(told) == 1, broken_contracts
    # Of a circle only the last parts of names are told.
    imported = line.rpartition(".")[2].removeprefix("import ")
    assert re.search(rf"\b{Path(name).stem} -> [\w.]*\b{imported}\b", told[0]), told[0]


@pytest.mark.slow
def test_an_unlisted_module_of_the_broker_is_found(broken_contracts: dict[str, str]) -> None:
    assert f"- broker.{UNLISTED}\n" in broken_contracts["The broker's layers"]


def imported_names(path: Path) -> Iterator[str]:
    """Yield the full names that a file imports; a name from a package may be a module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names):
                yield from (each.name for each in names)
            case ast.ImportFrom(str(module), names):
                yield module
                yield from (f"{module}.{each.name}" for each in names)


def circle_of_files(root: Path) -> list[str]:
    """Return the modules of one circle; empty if there is none."""
    paths = {}
    for program in FOLDERS:
        for path in (root / program).rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            paths[".".join(parts[:-1] if path.stem == "__init__" else parts)] = path
    graph = {
        module: {name for name in imported_names(path) if name in paths and name != module}
        for module, path in paths.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_file_imports_itself_by_way_of_others() -> None:
    assert circle_of_files(ROOT) == []


def test_a_circle_through_a_package_is_found(tmp_path: Path) -> None:
    package = tmp_path / FOLDERS[0]
    package.mkdir()
    (package / "__init__.py").write_text(f"from {FOLDERS[0]}.outer import outer\n")
    (package / "outer.py").write_text(f"from {FOLDERS[0]} import inner\n")
    (package / "inner.py").write_text("")
    assert set(circle_of_files(tmp_path)) == {FOLDERS[0], f"{FOLDERS[0]}.outer"}
