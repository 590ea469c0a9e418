"""House rules as an ordinary test: sizes, names, docstrings."""

import ast
import os
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = (
    "backup",
    "bench",
    "broker",
    "common",
    "connect",
    "console",
    "demo",
    "explain",
    "lag",
    "millstream",
    "mirror",
    "rest_proxy",
    "schemas",
    "services",
    "spark_analytics",
    "stack",
    "streams",
)
MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 70
MAX_FILES_PER_PACKAGE = 24
ONE_FILE_FOR_EACH = {"common/kafka/protocol/messages", "broker/cli"}
"""API, and tool: as many as Kafka has."""
VAGUE_NAMES = {"utils", "util", "manager", "helpers", "helper", "misc", "common_utils"}
VAGUE_CLASS_ENDINGS = ("Manager", "Helper", "Util", "Utils", "Impl")
KAFKA_NAMES = {"RemoteClusterUtils"}  # what users know it by


def files_of(folder: str) -> list[Path]:
    return sorted(path for path in (ROOT / folder).rglob("*.py") if "programs" not in path.parts)


def documents() -> list[Path]:
    """Return every document of the project."""
    return sorted(path for path in texts() if path.suffix == ".md")


def texts() -> Iterator[Path]:
    """Give what may be committed; what is skipped is large, and not looked into."""
    suffixes = {".py", ".md", ".toml", ".txt", ".yml", ".sh", ".json", ".cfg"}
    skipped = {".venv", ".git", "build", ".hypothesis", ".mypy_cache", "node_modules"}
    for folder, inner, names in os.walk(ROOT):
        inner[:] = sorted(set(inner) - skipped)
        paths = (Path(folder, name) for name in sorted(set(names) - skipped))
        yield from (path for path in paths if path.suffix in suffixes)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def problems(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    if text.count("\n") > MAX_FILE_LINES:
        yield f"{text.count(chr(10))} lines are more than {MAX_FILE_LINES}"
    if path.stem in VAGUE_NAMES:
        yield f"the name {path.stem} says nothing"
    if ast.get_docstring(tree) is None:
        yield "the module has no docstring"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > MAX_FUNCTION_LINES:
                yield f"{node.name} has {lines} lines, more than {MAX_FUNCTION_LINES}"
        if isinstance(node, ast.ClassDef) and node.name.endswith(VAGUE_CLASS_ENDINGS):
            if node.name in KAFKA_NAMES:
                continue
            yield f"the name {node.name} says nothing"


def clients_that_believe(path: Path) -> Iterator[str]:
    """Name those that are not told how soon to ask again who leads, and who controls."""
    text = path.read_text(encoding="utf-8")
    if "auto_offset_reset" not in text and "AdminClient(" not in text:
        return
    is_own = "from common.kafka.admin.client import" in text  # It asks again by itself.
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        call = ast.unparse(node)
        if call.startswith("AdminClient(") and not is_own and "ADMIN_SETTINGS" not in call:
            yield f"{name_of(path)}:{node.lineno}"
        settings = {one.arg for one in node.keywords}
        if "auto_offset_reset" in settings and "metadata_max_age_ms" not in settings:
            yield f"{name_of(path)}:{node.lineno}"


def test_clients_do_not_believe_for_long_who_leads() -> None:
    """See `common.kafka.consumer`. A benchmark has no broker that goes away."""
    files = [path for folder in FOLDERS if folder != "bench" for path in files_of(folder)]
    assert [one for path in files for one in clients_that_believe(path)] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_files_keep_the_house_rules(folder: str) -> None:
    files = files_of(folder)
    assert files
    found = {name_of(path): list(problems(path)) for path in files}
    assert {name: said for name, said in found.items() if said} == {}


@pytest.mark.parametrize("folder", FOLDERS)
def test_packages_stay_small_enough_to_look_through(folder: str) -> None:
    counts = Counter(name_of(path.parent) for path in files_of(folder))
    found = {name: count for name, count in counts.items() if count > MAX_FILES_PER_PACKAGE}
    assert found.keys() - ONE_FILE_FOR_EACH == set(), found


AROUND = re.compile(r"ensure_future\(|asyncio\.create_task\(|loop\(?\)?\.create_task\(")


@pytest.mark.parametrize(
    "line", ["asyncio.ensure_future(a())", "x = loop.create_task(a())", "asyncio.create_task(a())"]
)
def test_a_task_outside_of_a_group_is_found(line: str) -> None:
    assert AROUND.search(line)
    assert not AROUND.search("group.create_task(a())")


def test_tasks_start_in_a_task_group_or_in_one_place() -> None:
    """The linter bans `asyncio.create_task`; this is what would step around the ban.

    What users import starts its tasks by itself, because it does not import `common`.
    """
    files = [path for folder in FOLDERS for path in files_of(folder)]
    found = {name_of(path) for path in files if AROUND.search(path.read_text(encoding="utf-8"))}
    own = {"millstream/processes/child_processes.py", "millstream/testing/links.py"}
    assert found == {"common/process/tasks.py", *own}


def test_no_committed_text_names_this_machine_or_a_registry() -> None:
    forbidden = ("/" + "root/", "/" + "work/", "pypi" + ".org", "files.python" + "hosted")
    found = []
    for path in texts():
        text = path.read_text(encoding="utf-8", errors="replace")
        found += [f"{name_of(path)}: {word}" for word in forbidden if word in text]
    assert found == []


IMPORT = re.compile(r"^ *from ([\w.]+) import (?:\(([^)]+)\)|([\w, ]+))", re.MULTILINE)


def imported(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names that a file imports from our own modules, with the module."""
    for module, in_brackets, in_line in IMPORT.findall(text):
        if module.partition(".")[0] in {*FOLDERS, "tests"}:
            for name in re.sub(r"#.*", "", in_brackets or in_line).split(","):
                if words := name.split():
                    yield module, words[0]


@cache
def has(module: str, name: str) -> bool:
    """Tell whether a module has a name: a line begins with it, or it is imported, soon or late."""
    place = ROOT.joinpath(*module.split("."))
    if place.is_dir() and ((place / name).is_dir() or (place / f"{name}.py").exists()):
        return True
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    text = file.read_text(encoding="utf-8")
    is_said = re.search(
        rf'^(?:(?:async )?def |class |[\w, ]+, )?{name}\b|"{name}"', text, re.MULTILINE
    )
    imports = (*IMPORT.findall(text), *re.findall(r"^ *(import) (.*)()", text, re.MULTILINE))
    return bool(is_said) or any(re.search(rf"\b{name}\b", " ".join(each)) for each in imports)


@pytest.mark.parametrize("name", ["Iterator", "re", "ROOT", "has", "test_tidy"])
def test_a_name_that_is_there_is_found(name: str) -> None:
    assert has("tests" if name == "test_tidy" else __name__, name)
    assert not has(__name__, f"{name}_of_nobody")


def test_what_tests_import_is_there() -> None:
    """The types of tests are not checked, and a name that has moved fails only where it is used."""
    found = {
        (name_of(path), module, name)
        for folder in ("tests", "bench")
        for path in files_of(folder)
        for module, name in imported(path.read_text(encoding="utf-8"))
        if not has(module, name)
    }
    assert found == set()
